//! What no call could work with, found before the first one. What is in the configuration, the configuration's reader checks.

use std::ffi::OsString;
use std::path::PathBuf;

/// The SDK puts these into headers, and cannot where something else came along with them, say a file's last line break.
const VARIABLES: [&str; 5] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"];

/// How the shared configuration names another server, and how much of it is read.
const ENDPOINT_URL: &[u8] = b"endpoint_url";
const MOST_CONFIG: u64 = 1 << 20;

/// Finds what is wrong with this process's environment.
pub(crate) fn check_environment() -> Result<(), String> {
    check(|name| std::env::var_os(name))
}

fn check(variable: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    for name in VARIABLES {
        let fit = |value: &str| value.bytes().all(|b| b.is_ascii_graphic());
        if variable(name).is_some_and(|value| !value.to_str().is_some_and(fit)) {
            return Err(format!(
                "the environment variable {name} has a blank, a line break, or something else in it that cannot belong to it: set it anew without"
            ));
        }
    }
    Ok(())
}

/// Whether requests may go to another server than Amazon's although `aws.endpoint` names none: the environment or the shared configuration names one, as
/// far as a look at both can tell.
pub(crate) fn may_name_an_endpoint() -> bool {
    names_an_endpoint(|name| std::env::var_os(name))
}

fn names_an_endpoint(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let file = variable("AWS_CONFIG_FILE").map(PathBuf::from);
    let file = file.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".aws/config")));
    let text = file.and_then(|file| crate::regular_file::read(&file, MOST_CONFIG).ok()).unwrap_or_default();
    let has_one = text.windows(ENDPOINT_URL.len()).any(|piece| piece == ENDPOINT_URL);
    has_one || is_set("AWS_ENDPOINT_URL") || is_set("AWS_ENDPOINT_URL_S3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_regions_have_nothing_around_them_and_are_not_shown() {
        for name in VARIABLES {
            let with = |value: &str| check(|asked| (asked == name).then(|| value.into()));
            assert_eq!(with("AKIDEXAMPLE/+="), Ok(()));
            for value in ["hush\n", " hush", "hu\u{fc}sh"] {
                let refused = with(value).unwrap_err();
                assert!(refused.contains(name) && !refused.contains("hu"), "{value:?}: {refused}");
            }
        }
        assert_eq!(check(|_| None), Ok(()));
    }

    #[test]
    fn another_server_may_be_named_by_a_variable_or_in_the_shared_configuration() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let with = |name: &'static str, value: &str| {
            let (value, home) = (OsString::from(value), home.path().as_os_str().to_owned());
            move |asked: &str| match asked {
                "HOME" => Some(home.clone()),
                asked => (asked == name).then(|| value.clone()),
            }
        };
        assert!(!names_an_endpoint(with("", "")));
        assert!(!names_an_endpoint(with("AWS_ENDPOINT_URL", "")));
        assert!(names_an_endpoint(with("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")));
        assert!(names_an_endpoint(with("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000")));
        let own = home.path().join("own");
        std::fs::write(&own, "[default]\nregion = eu-west-1\n").unwrap();
        assert!(!names_an_endpoint(with("AWS_CONFIG_FILE", own.to_str().unwrap())));
        let text = "[services local]\ns3 =\n  endpoint_url = http://127.0.0.1:9000\n";
        std::fs::write(home.path().join(".aws/config"), text).unwrap();
        assert!(names_an_endpoint(with("", "")));
        assert!(!names_an_endpoint(with("AWS_CONFIG_FILE", own.to_str().unwrap())), "that one stands in its place");
    }
}
