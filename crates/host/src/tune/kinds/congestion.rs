//! The default congestion control and the parameters of its modules.

use super::{Kind, Knob, module, sysctl};
use crate::tune::backend::Backend;

/// `cc.default`, `cc.NAME.PARAMETER`.
pub(crate) struct Congestion;

const MODULES: &str = "/sys/module/";

impl Kind for Congestion {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cc.default", "the congestion control of new connections"),
            ("cc.cubic.beta", "a parameter of a congestion control (/sys/module/tcp_cubic/parameters)"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        if key == "cc.default" {
            // One setting has one key, so that it has one lease.
            return sysctl::Sysctl.setting("sysctl.net.ipv4.tcp_congestion_control");
        }
        let (name, parameter) = key.strip_prefix("cc.")?.split_once('.')?;
        let plain =
            |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !plain(name) || !plain(parameter) {
            return None;
        }
        module::parameter(key.into(), &format!("tcp_{name}"), parameter)
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = vec!["cc.default".to_owned()];
        for module in backend.list(MODULES).unwrap_or_default() {
            let Some(name) = module.trim_end_matches('/').strip_prefix("tcp_") else { continue };
            let parameters = backend.list(&format!("{MODULES}tcp_{name}/parameters")).unwrap_or_default();
            keys.extend(parameters.into_iter().map(|parameter| format!("cc.{name}.{parameter}")));
        }
        keys
    }
}
