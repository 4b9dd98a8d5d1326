//! The kernel's pacing.

use model::LimiterKind;
use model::units::bits_per_second;

use super::super::scene::{Course, Scene, courses, each, ramp};
use super::{Rule, Seen};
use crate::way::Way;

pub(super) const PACING: Rule = Rule {
    name: "pacing-rate",
    speaks_for: &[LimiterKind::Pacing],
    about: "The rate is the one that the kernel paced the connection to.",
    source: "socket(7), SO_MAX_PACING_RATE; tcpi_pacing_rate in linux/tcp.h",
    see: |_: &Scene<'_>, way: &Way<'_>| {
        let courses = courses(way);
        if let Some(most) = way.sender.options.max_pacing_bps {
            // Headers are paced too: payload is a few percent less.
            let part = each(&courses, |course| Some(course.rate_bps / most as f64)).unwrap_or(0.0);
            return Seen::of(LimiterKind::Pacing, 0.95 * ramp(part, 0.75, 0.92), || {
                let (rate, asked) = (bits_per_second(part * most as f64), bits_per_second(most as f64));
                format!("a connection was paced to {asked}, headers included (SO_MAX_PACING_RATE), and carried {rate}")
            });
        }
        // A TCP that paces to hold a rate, such as BBR; the others pace at up to twice what the window carries.
        let own = |course: &Course<'_>| course.cc().is_some_and(|cc| cc.starts_with("bbr"));
        let Some(part) = each(&courses, |course| Some(course.rate_bps / course.pacing_bps()?).filter(|_| own(course)))
        else {
            return Vec::new();
        };
        let weight = 0.6 * ramp(part, 0.7, 0.9);
        Seen::of(LimiterKind::Pacing, weight, || {
            let cc = courses.iter().find_map(Course::cc).unwrap_or("its congestion control");
            format!("{cc} paced the connection, which carried {:.0} % of its pacing rate", 100.0 * part)
        })
    },
};
