//! What coordinators get from an agent, step by step. Whole runs are in `tests/all`.

use model::{PathTimes, Pattern, Role, Setting, Spec};

use super::*;
use crate::message::{Cause, Prepare, RefusalCause};
use crate::worker_message::FromWorker;

const SECOND: Time = Duration::from_secs(1);

fn agent(change: impl FnOnce(&mut Rules)) -> Agent {
    let mut rules = Rules { allows_tuning: true, grace: Duration::from_secs(5), ..Rules::default() };
    change(&mut rules);
    let mut agent = Agent::new(1);
    agent.obey(rules);
    agent
}

fn client(number: u8) -> Client {
    Client {
        source: Some(IpAddr::from([192, 0, 2, number])),
        is_remote: true,
        ticket: format!("ticket {number}"),
        ..Client::default()
    }
}

fn say(agent: &mut Agent, now: Time, session: SessionId, message: ToAgent) -> Vec<Action> {
    agent.on(now, session, Event::Message(Box::new(message)))
}

fn acquire(purpose: &str) -> ToAgent {
    ToAgent::Acquire { purpose: purpose.into(), join: None }
}

/// A session that has the machine.
fn measuring(agent: &mut Agent, number: u8) -> SessionId {
    let session = agent.open(client(number)).unwrap();
    let granted = sent(say(agent, Time::ZERO, session, acquire("a stream")));
    assert_eq!(granted, [FromAgent::Granted { ticket: Some(format!("ticket {number}")) }]);
    session
}

/// The messages among actions.
fn sent(actions: Vec<Action>) -> Vec<FromAgent> {
    let message = |action| match action {
        Action::Send(message) => Some(*message),
        _ => None,
    };
    actions.into_iter().filter_map(message).collect()
}

/// The names of actions.
fn names(actions: &[Action]) -> Vec<String> {
    let name = |action| format!("{action:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
    actions.iter().map(name).collect()
}

fn prepare(change: impl FnOnce(&mut Spec)) -> ToAgent {
    let mut spec = Spec::new("tcp", Pattern::Stream);
    change(&mut spec);
    let (legs, rendezvous, reach_token, keep) = Default::default();
    let path = PathTimes::default();
    ToAgent::Prepare(Box::new(Prepare {
        trial: 0,
        role: Role::Passive,
        spec,
        legs,
        rendezvous,
        reach_token,
        keep,
        path,
    }))
}

fn worker(index: usize, message: FromWorker) -> Event {
    Event::Worker { index, message: Box::new(message), round_trip: Duration::from_millis(10) }
}

fn tuned(cuts: bool) -> Event {
    let value = |text: &str| text.to_owned();
    let change = model::Change {
        key: value("dev.eth0.mtu"),
        before: value("1500"),
        requested: value("9000"),
        now: value("9000"),
        host_wide: false,
        note: None,
    };
    Event::Tuned(Ok(Tuned { changes: vec![change], mark: 0, cuts }))
}

fn tune() -> ToAgent {
    ToAgent::Tune { settings: vec![Setting { key: "dev.eth0.mtu".into(), value: "9000".into() }], keep: false }
}

#[test]
fn users_are_listed_until_they_leave_and_their_addresses_for_those_who_proved_themselves() {
    let mut agent = agent(|_| {});
    let first = measuring(&mut agent, 1);
    let asks = agent.open(Client { is_proved: true, ..client(2) }).unwrap();
    let stranger = agent.open(client(3)).unwrap();
    let users = |agent: &mut Agent, session| match &sent(say(agent, 3 * SECOND, session, ToAgent::AskUsers))[..] {
        [FromAgent::Users { users, waiting }] => (users.clone(), *waiting),
        other => panic!("{other:?}"),
    };
    let (listed, waiting) = users(&mut agent, asks);
    let source = Some("192.0.2.1".to_owned());
    assert_eq!((listed.len(), waiting), (1, 0));
    assert_eq!(listed[0], MachineUser { purpose: "a stream".into(), source, for_ns: 3_000_000_000 });
    assert_eq!(users(&mut agent, stranger).0[0].source, None);
    assert_eq!(names(&say(&mut agent, SECOND, first, ToAgent::Release)), ["EndMeasurement", "PutBack"]);
    assert_eq!(names(&agent.on(SECOND, first, Event::PutBack)), ["Left"]);
    assert!(users(&mut agent, asks).0.is_empty());
    assert!(agent.queue().enter_at_once());
    assert_eq!(users(&mut agent, asks).0[0].purpose, "another program");
}

#[test]
fn changes_of_the_queue_are_reported_at_most_once_a_second_and_the_turn_at_once() {
    let mut agent = agent(|_| {});
    let first = measuring(&mut agent, 1);
    let [second, third, last] = [2, 3, 4].map(|number| agent.open(client(number)).unwrap());
    for session in [second, third] {
        let _ = say(&mut agent, Time::ZERO, session, acquire("a curve"));
    }
    assert_eq!(sent(say(&mut agent, Time::ZERO, last, acquire("a curve"))), [FromAgent::Queued { ahead: 3 }]);
    assert_eq!(names(&say(&mut agent, SECOND / 4, third, ToAgent::Release)), [""; 0]);
    assert!(agent.on(SECOND / 4, last, Event::Turn).is_empty(), "not within a second");
    assert_eq!(agent.deadline(last), Some(SECOND));
    assert_eq!(sent(agent.on(SECOND, last, Event::Timer)), [FromAgent::Queued { ahead: 2 }]);
    let _ = say(&mut agent, SECOND, second, ToAgent::Release);
    let _ = (say(&mut agent, SECOND, first, ToAgent::Release), agent.on(SECOND, first, Event::PutBack));
    let granted = sent(agent.on(SECOND, last, Event::Turn));
    assert_eq!(granted, [FromAgent::Granted { ticket: Some("ticket 4".into()) }]);
}

#[test]
fn a_trial_goes_from_its_set_up_to_its_result() {
    let mut agent = agent(|_| {});
    let session = measuring(&mut agent, 1);
    let two = prepare(|spec| (spec.processes, spec.flows) = (2, 2));
    assert_eq!(names(&say(&mut agent, Time::ZERO, session, two)), ["SetUp"]);
    assert!(agent.on(SECOND, session, Event::SetUp(Ok(None))).is_empty(), "the workers say where they listen");
    let armed = || FromWorker::Armed { sockets: Vec::new() };
    assert!(agent.on(SECOND, session, worker(0, armed())).is_empty());
    assert_eq!(names(&agent.on(3 * SECOND, session, worker(1, armed()))), ["Armed"]);
    assert_eq!(names(&say(&mut agent, 3 * SECOND, session, ToAgent::Start)), ["Start"]);
    let done = || FromWorker::Done(Box::default());
    assert!(agent.on(4 * SECOND, session, worker(0, done())).is_empty());
    match &agent.on(4 * SECOND, session, worker(1, done()))[..] {
        [Action::Finish(ended)] => {
            assert_eq!((ended.done.len(), ended.set_up_in, ended.overlapped), (2, 2 * SECOND, 0));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(&sent(agent.on(4 * SECOND, session, Event::Finished(Box::default())))[..], [FromAgent::Done(_)]));
}

#[test]
fn the_cause_of_a_workers_failure_is_the_trial_once_it_runs() {
    let mut agent = agent(|_| {});
    let session = measuring(&mut agent, 1);
    for (starts, cause) in [(false, Cause::Setup), (true, Cause::Trial)] {
        let _ = say(&mut agent, Time::ZERO, session, prepare(|_| {}));
        if starts {
            let _ = say(&mut agent, Time::ZERO, session, ToAgent::Start);
        }
        let failed = agent.on(Time::ZERO, session, worker(0, FromWorker::Failed { reason: "no route".into() }));
        assert_eq!(names(&failed), ["EndWorkers", "Send"]);
        assert_eq!(sent(failed), [FromAgent::Failed { reason: "no route".into(), cause }]);
    }
}

#[test]
fn a_trial_beyond_a_limit_fails_and_the_machine_stays() {
    let mut agent = agent(|rules| rules.limits.flows = 4);
    let session = measuring(&mut agent, 1);
    let failed = sent(say(&mut agent, Time::ZERO, session, prepare(|spec| spec.flows = 5)));
    assert!(matches!(&failed[..], [FromAgent::Failed { cause: Cause::Limits, .. }]), "{failed:?}");
    assert_eq!(names(&say(&mut agent, Time::ZERO, session, prepare(|spec| spec.flows = 4))), ["SetUp"]);
}

#[test]
fn readings_are_two_round_trips_apart() {
    let mut agent = agent(|_| {});
    let session = measuring(&mut agent, 1);
    let _ =
        (say(&mut agent, Time::ZERO, session, prepare(|_| {})), say(&mut agent, Time::ZERO, session, ToAgent::Start));
    let at = [0, 10, 19, 20, 39, 40].map(Duration::from_millis);
    let reports = at.map(|now| agent.on(now, session, worker(0, FromWorker::Reading(model::Reading::default()))).len());
    assert_eq!(reports, [1, 0, 0, 1, 0, 1]);
}

#[test]
fn the_time_limit_ends_a_session_and_reverts_its_settings_at_once() {
    let mut agent = agent(|rules| rules.limits.hold_ns = 10_000_000_000);
    let session = measuring(&mut agent, 1);
    let _ = (say(&mut agent, Time::ZERO, session, tune()), agent.on(Time::ZERO, session, tuned(false)));
    assert_eq!(agent.deadline(session), Some(10 * SECOND));
    assert!(agent.on(9 * SECOND, session, Event::Timer).is_empty());
    let ended = agent.on(10 * SECOND, session, Event::Timer);
    assert_eq!(names(&ended), ["Send", "EndMeasurement", "PutBack"]);
    assert!(matches!(&sent(ended)[..], [FromAgent::Refused { cause: RefusalCause::Other, .. }]));
    assert_eq!(names(&agent.on(10 * SECOND, session, Event::PutBack)), ["Left", "Close"]);
    assert_eq!((agent.clients(), agent.measurements()), (0, 0));
}

#[test]
fn the_settings_of_a_lost_coordinator_are_reverted_after_the_grace_period_and_nobody_measures_before() {
    let mut agent = agent(|_| {});
    let session = measuring(&mut agent, 1);
    let _ = (say(&mut agent, Time::ZERO, session, tune()), agent.on(Time::ZERO, session, tuned(false)));
    let next = agent.open(client(2)).unwrap();
    let _ = say(&mut agent, Time::ZERO, next, acquire("a curve"));
    assert_eq!(names(&agent.on(SECOND, session, Event::Gone)), ["EndMeasurement"]);
    assert_eq!(agent.deadline(session), Some(6 * SECOND));
    assert_eq!(names(&agent.on(6 * SECOND, session, Event::Timer)), ["PutBack"]);
    assert!(sent(agent.on(6 * SECOND, next, Event::Turn)).is_empty(), "the settings are not reverted yet");
    assert_eq!(names(&agent.on(7 * SECOND, session, Event::PutBack)), ["Left", "Close"]);
    assert!(matches!(&sent(agent.on(7 * SECOND, next, Event::Turn))[..], [FromAgent::Granted { .. }]));
}

#[test]
fn a_change_that_may_cut_the_connection_is_undone_unless_it_is_confirmed() {
    for confirms in [true, false] {
        let mut agent = agent(|_| {});
        let session = measuring(&mut agent, 1);
        assert_eq!(names(&say(&mut agent, Time::ZERO, session, tune())), ["Tune"]);
        let asked = sent(agent.on(Time::ZERO, session, tuned(true)));
        assert!(matches!(&asked[..], [FromAgent::Tuned { confirm: true, .. }]));
        if confirms {
            assert_eq!(sent(say(&mut agent, SECOND, session, ToAgent::Keep)), [FromAgent::Kept]);
            assert!(agent.minds_its_helper(session));
        } else {
            assert_eq!(names(&agent.on(5 * SECOND, session, Event::Timer)), ["Undo"]);
            assert!(matches!(&sent(agent.on(5 * SECOND, session, Event::Undone))[..], [FromAgent::Untuned { .. }]));
            assert!(!agent.minds_its_helper(session), "nothing is changed");
        }
    }
}

#[test]
fn a_session_that_nobody_serves_gives_all_back() {
    let mut agent = agent(|_| {});
    let [measures, waits, watches] = [1, 2, 3].map(|number| agent.open(client(number)).unwrap());
    let _ = say(&mut agent, Time::ZERO, measures, acquire("a stream"));
    let _ = say(&mut agent, Time::ZERO, waits, acquire("a curve"));
    let _ = say(&mut agent, Time::ZERO, watches, ToAgent::Watch { interval_ns: 1 });
    [measures, waits, watches].into_iter().for_each(|session| agent.close(session));
    assert_eq!((agent.clients(), agent.measurements()), (0, 0));
    assert_eq!((agent.queue().running(), agent.queue().waiting()), (0, 0));
    assert_eq!(agent.queue().watch_interval(None), Duration::from_millis(0), "nobody watches");
}
