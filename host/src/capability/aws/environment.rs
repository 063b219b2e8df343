//! What no call could work with, found before the first one. What is in the configuration, the configuration's reader checks.

use std::ffi::OsString;

/// The SDK puts these into headers, and cannot where something else came along with them, say a file's last line break.
const VARIABLES: [&str; 5] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"];

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
}
