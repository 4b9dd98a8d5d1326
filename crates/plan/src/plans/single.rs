//! Reads one spec from a file with the keys of a plan: `[base]` and `[settings]`.

use std::collections::BTreeMap;

use model::Spec;

use super::factors::{Origins, base, check_fields};
use super::keys::settings;
use crate::mistake::Mistake;
use crate::resolver::Resolver;
use crate::source::{Table, TomlSource};

/// Reads the spec in `text`, the contents of the file `name`.
///
/// # Errors
/// The line, the column and the key of a mistake. A curve is an error: it has many specs.
pub fn read_spec(name: &str, text: String, resolver: &dyn Resolver) -> Result<Spec, Mistake> {
    let source = TomlSource::new(name, "a spec file", text, BTreeMap::new());
    let parsed = source.parse()?;
    let top = Table::whole(&source, &parsed);
    top.known(&["base", "settings"])?;
    if !top.has("base") && !top.has("settings") {
        return Err(top.wrong("this is not a spec: write [base] as in a plan, or use the JSON of a spec"));
    }
    let base = base(&top)?;
    let cell_fields = check_fields(&top, &base, &[], &[])?;
    let fields: BTreeMap<String, String> = base.iter().map(|(key, at)| (key.clone(), at.value.clone())).collect();
    let origins = Origins { base: &base, factors: &[], list: &[] };
    let specs = cell_fields.specs(&fields, resolver).map_err(|error| match origins.place(&error, &fields) {
        Some(at) => top.wrong_at(at, error),
        None => top.wrong(error),
    })?;
    match <[Spec; 1]>::try_from(specs) {
        Ok([spec]) if !spec.is_point() => Ok(Spec { settings: settings(&top)?, ..spec }),
        _ => Err(top.wrong("a curve is several measurements: measure one size with rr or stream")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;
    use model::Pattern;

    #[test]
    fn a_spec_has_its_fields_and_its_settings() {
        let text = "[base]\npattern = \"rr\"\nblock = \"64\"\nnear.sndbuf = \"1MiB\"\n\
                    [settings]\nnear = { \"sysctl.net.ipv4.tcp_sack\" = 0 }\nboth = { \"cc.default\" = \"reno\" }\n";
        let spec = read_spec("b.toml", text.into(), &TestHost).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert!(spec.pattern == Pattern::Rr && spec.block == 64 && spec.near.sndbuf == Some(1 << 20));
        let shown = |list: &[model::Setting]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&spec.settings.near), ["sysctl.net.ipv4.tcp_sack=0", "cc.default=reno"]);
        assert_eq!(shown(&spec.settings.far), ["cc.default=reno"]);
    }

    #[test]
    fn errors_point_at_the_mistake() {
        let wrong = |text: &str| read_spec("b.toml", text.into(), &TestHost).unwrap_err().to_string();
        assert_eq!(
            wrong("[base]\ntime = \"1s\"\n[setting]\n"),
            "b.toml:3:2: setting: a spec file has no 'setting'; did you mean 'settings'?"
        );
        assert!(wrong("[base]\nsndbufs = 1\n").contains("b.toml:2:1: base.sndbufs: thru stream has no 'sndbufs'"));
        assert!(wrong("[base]\npattern = \"curve\"\n").contains("a curve is several measurements"));
    }
}
