//! The file that `up --config` reads: what stands in it once, a service need not say each time.
//!
//! Its words are those of the options.  Whatever does not read is told with its line and a caret.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cmd::level::Level;
use crate::failure::{Failure, Outcome, Within as _};

/// What the file may say; `packaging/selvedge.example.toml` has all of it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where everything is kept.
    pub(crate) data: Option<PathBuf>,
    /// Where to listen.
    pub(crate) listen: Option<SocketAddr>,
    /// The plant file of a new data directory.
    pub(crate) plant: Option<PathBuf>,
    /// What may be done without being asked.
    pub(crate) act: Option<Level>,
    /// How fast a simulated plant's time runs.
    pub(crate) speed: Option<f64>,
    /// The machine's account that the commands of jobs run under.
    pub(crate) task_account: Option<String>,
    /// What to serve by TLS with.
    pub(crate) tls: Option<TlsConfig>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// The certificate, then those that lead to its root.
    pub(crate) cert: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

impl Config {
    /// What `path` says; the files that it names lie beside it unless their names are whole.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path).within(|| format!("cannot read {}", path.display()))?;
        let beside = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, beside).map_err(|error| {
            Failure::new(format!("{} does not read:\n{error}", path.display()))
                .hint("selvedge.example.toml has every key")
        })
    }

    fn parse(text: &str, beside: &Path) -> Result<Self, toml::de::Error> {
        let mut config: Config = toml::from_str(text)?;
        let tls = config.tls.iter_mut().flat_map(|it| [&mut it.cert, &mut it.key]);
        for path in config.data.iter_mut().chain(config.plant.iter_mut()).chain(tls) {
            *path = beside.join(&*path);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn the_example_has_every_key_and_reads() {
        let text = include_str!("../../../../packaging/selvedge.example.toml");
        let config = Config::parse(text, Path::new("/etc/selvedge")).unwrap();
        assert_eq!(config.data.as_deref(), Some(Path::new("/var/lib/selvedge")));
        // What is commented out reads too.
        let strip = |line: &str| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n";
        let all: String = text.lines().map(strip).collect();
        let config = Config::parse(&all, Path::new("/etc/selvedge")).unwrap();
        let tls = config.tls.unwrap();
        assert_eq!(tls.key, Path::new("/etc/selvedge/tls/key.pem"));
        assert!(config.plant.is_some() && config.act.is_some() && config.speed.is_some());
        assert!(config.listen.is_some() && config.task_account.is_some());
    }

    fn refused(text: &str, expected: Expect) {
        expected.assert_eq(&Config::parse(text, Path::new("")).unwrap_err().to_string());
    }

    #[test]
    fn what_does_not_read_is_told_with_line_and_caret() {
        refused(
            "data = \"d\"\nlistn = \"127.0.0.1:1\"\n",
            expect![[r#"
            TOML parse error at line 2, column 1
              |
            2 | listn = "127.0.0.1:1"
              | ^^^^^
            unknown field `listn`, expected one of `data`, `listen`, `plant`, `act`, `speed`, `task_account`, `tls`
        "#]],
        );
        refused(
            "listen = \"pod.example\"\n",
            expect![[r#"
            TOML parse error at line 1, column 10
              |
            1 | listen = "pod.example"
              |          ^^^^^^^^^^^^^
            invalid socket address syntax
        "#]],
        );
        refused(
            "act = \"everything\"\n",
            expect![[r#"
            TOML parse error at line 1, column 7
              |
            1 | act = "everything"
              |       ^^^^^^^^^^^^
            unknown variant `everything`, expected one of `observe`, `quarantine`, `drain`, `repair`
        "#]],
        );
        refused(
            "[tls]\ncert = \"c.pem\"\n",
            expect![[r#"
            TOML parse error at line 1, column 1
              |
            1 | [tls]
              | ^^^^^
            missing field `key`
        "#]],
        );
        refused(
            "speed = fast\n",
            expect![[r#"
            TOML parse error at line 1, column 9
              |
            1 | speed = fast
              |         ^^^^
            invalid boolean, expected `false`
        "#]],
        );
    }
}
