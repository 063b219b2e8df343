//! What no call could work with, found before the first one.

use crate::config::AwsConfig;

/// What is wrong with the address of a service, if anything. Never repeats a password.
fn check_url(url: &str) -> Result<(), String> {
    let remedy = "write http:// or https://, a host, and perhaps a port, like http://127.0.0.1:9000";
    if url.contains('@') {
        return Err(format!("a user or password in the URL is not used; {remedy}"));
    }
    let wrong = || format!("{url:?} is not such a URL: {remedy}");
    let uri: axum::http::Uri = url.parse().map_err(|_| wrong())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
    let behind_brackets = authority.as_str().rsplit(']').next().unwrap_or("");
    let port_fits =
        behind_brackets.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    let whole = ["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme))
        && !authority.host().is_empty()
        && port_fits;
    if !whole || uri.query().is_some() { Err(wrong()) } else { Ok(()) }
}

/// Finds what no call could work with.
pub(crate) fn check_settings(settings: &AwsConfig) -> Result<(), String> {
    for (name, url) in [("endpoint", &settings.endpoint), ("sts_endpoint", &settings.sts_endpoint)] {
        if let Some(url) = url {
            check_url(url).map_err(|what| format!("aws.{name}: {what}"))?;
        }
    }
    let region = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if let Some(text) = &settings.region
        && (text.is_empty() || !region(text))
    {
        return Err(format!(
            "aws.region: {text:?} is no region: write it as AWS does, like us-east-1, with nothing around it"
        ));
    }
    // The SDK puts these into headers, and cannot where something else came along with them, say a file's last line break.
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"]
    {
        let fit = |value: &str| value.bytes().all(|b| b.is_ascii_graphic());
        if std::env::var_os(name).is_some_and(|value| !value.to_str().is_some_and(fit)) {
            return Err(format!(
                "the environment variable {name} has a blank, a line break, or something else in it that cannot belong to it: set it anew without"
            ));
        }
    }
    if settings.role_arn.is_none() && (settings.external_id.is_some() || settings.session_name.is_some()) {
        return Err(
            "aws.external_id and aws.session_name belong to a role: write aws.role_arn, or leave them out".into()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_endpoint(url: &str) -> AwsConfig {
        AwsConfig { endpoint: Some(url.into()), ..AwsConfig::default() }
    }

    #[test]
    fn a_region_has_nothing_around_it() {
        for (region, good) in
            [("us-east-1", true), ("us-gov-west-1", true), ("us-east-1\n", false), ("us east", false), ("", false)]
        {
            let settings = AwsConfig { region: Some(region.into()), ..AwsConfig::default() };
            assert_eq!(check_settings(&settings).is_ok(), good, "{region:?}");
        }
    }

    #[test]
    fn a_password_in_an_endpoint_is_not_repeated() {
        let refused = check_settings(&with_endpoint("http://key:hush@host")).unwrap_err();
        assert!(!refused.contains("hush"), "{refused}");
    }

    #[test]
    fn an_endpoint_is_a_url_with_a_host() {
        for (url, good) in [
            ("http://127.0.0.1:9000", true),
            ("https://s3.example.com/", true),
            ("HTTP://minio", true),
            ("http://[::1]:9000", true),
            ("127.0.0.1:9000", false),
            ("ftp://host", false),
            ("http://", false),
            ("http:///bucket", false),
            ("https://key:secret@host", false),
            ("http://[::1", false),
            ("http://host:99999", false),
            ("http://host/path?q=1", false),
            ("", false),
        ] {
            assert_eq!(check_settings(&with_endpoint(url)).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn an_external_id_without_a_role_is_a_mistake() {
        let mut settings = AwsConfig { external_id: Some("x".into()), ..AwsConfig::default() };
        assert!(check_settings(&settings).is_err());
        settings.role_arn = Some("arn:aws:iam::123456789012:role/r".into());
        assert!(check_settings(&settings).is_ok());
    }
}
