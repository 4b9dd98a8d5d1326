//! Short texts: an agent's address, key and token, the offer of a launcher, sizes, rates and times.
#![no_main]

use control::coordinator::check_host;
use control::proof::auth::Token;
use control::proof::fingerprint::Fingerprint;
use model::units::{BitRate, ByteSize, Nanos, Ratio};
use options::values;
use session::launch::Offer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = &*String::from_utf8_lossy(bytes);
    let _ = (check_host(text), Token::new(text));
    if let Ok(key) = text.parse::<Fingerprint>() {
        assert_eq!(key.to_string(), text);
    }
    if let Some(offer) = Offer::parse(text) {
        assert_eq!(Offer::parse(&offer.line()), Some(offer));
    }
    let _ = (text.parse::<ByteSize>(), text.parse::<BitRate>(), text.parse::<Nanos>(), text.parse::<Ratio>());
    let _ = (values::name(text), values::address(text), values::data_address(text), values::variable(text));
    let _ = (text.parse::<values::Cores>(), text.parse::<values::RequestRate>());
    let _ = (text.parse::<values::SetFlag>(), text.parse::<values::EngineFlag>());
    let _ = stacks::StackRequest::parse(text);
});
