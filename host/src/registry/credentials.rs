//! Who Wharf is to a registry: a file as `docker login` and `podman login` write it.

use std::path::{Path, PathBuf};

use aws_smithy_types::base64;
use oci_client::secrets::RegistryAuth;
use serde_json::Value;

/// Largest file, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Where the file is when nothing names one: `$DOCKER_CONFIG/config.json`, else `~/.docker/config.json`, where that is there.
#[must_use]
pub fn default_file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker")));
    folder.map(|folder| folder.join("config.json")).filter(|file| file.is_file())
}

/// What a registry is told. Nobody in particular where the file does not name it.
///
/// # Errors
/// Where the file cannot be used, in words without what is in it.
pub(super) fn of(file: Option<&Path>, registry: &str) -> Result<RegistryAuth, String> {
    let Some(file) = file else { return Ok(RegistryAuth::Anonymous) };
    let told = |what: &str| format!("the file with credentials of registries {}: {what}", file.display());
    let length = std::fs::metadata(file).map_err(|cause| told(&cause.to_string()))?.len();
    if length > MOST_BYTES {
        return Err(told("it is larger than 1 MiB"));
    }
    let text = std::fs::read(file).map_err(|cause| told(&cause.to_string()))?;
    // The parser's own words could show what is in the file.
    let config: Value = serde_json::from_slice(&text).map_err(|_| told("it is no JSON"))?;
    let entry = config
        .get("auths")
        .and_then(Value::as_object)
        .and_then(|auths| auths.iter().find(|(name, _)| same_host(name, registry)).map(|(_, entry)| entry));
    let found = entry.and_then(of_entry);
    if found.is_none() && has_helper(&config, registry, entry) {
        return Err(told(&format!(
            "{registry} has a credential helper there, which Wharf does not run: write a file of its own with `docker --config FOLDER login {registry}`"
        )));
    }
    Ok(found.unwrap_or(RegistryAuth::Anonymous))
}

/// `https://index.docker.io/v1/` is what `docker login` calls docker.io.
fn same_host(name: &str, registry: &str) -> bool {
    let host = name.split_once("://").map_or(name, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or(host);
    host == registry || (registry == "docker.io" && host == "index.docker.io")
}

fn of_entry(entry: &Value) -> Option<RegistryAuth> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(token) = text("registrytoken") {
        return Some(RegistryAuth::Bearer(token.to_owned()));
    }
    if let (Some(user), Some(password)) = (text("username"), text("password")) {
        return Some(RegistryAuth::Basic(user.to_owned(), password.to_owned()));
    }
    let decoded = String::from_utf8(base64::decode(text("auth")?).ok()?).ok()?;
    let (user, password) = decoded.trim_end_matches('\0').split_once(':')?;
    Some(RegistryAuth::Basic(user.to_owned(), password.to_owned()))
}

fn has_helper(config: &Value, registry: &str, entry: Option<&Value>) -> bool {
    let helpers = config.get("credHelpers").and_then(Value::as_object);
    helpers.is_some_and(|helpers| helpers.keys().any(|name| same_host(name, registry)))
        || (entry.is_some() && config.get("credsStore").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_told_what_docker_login_wrote_down_for_it_and_no_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        // `dXNlcjpwYTpzcw==` is user:pa:ss.
        let text = r#"{ "auths": {
            "registry.example.com": { "auth": "dXNlcjpwYTpzcw==" },
            "https://index.docker.io/v1/": { "username": "u", "password": "p" },
            "token.example.com:5000": { "registrytoken": "t" },
            "kept.example.com": {} },
            "credsStore": "desktop", "credHelpers": { "ecr.example.com": "ecr-login" } }"#;
        std::fs::write(&file, text).unwrap();
        let basic = |user: &str, password: &str| RegistryAuth::Basic(user.into(), password.into());
        for (registry, expected) in [
            ("registry.example.com", basic("user", "pa:ss")),
            ("docker.io", basic("u", "p")),
            ("token.example.com:5000", RegistryAuth::Bearer("t".into())),
            ("token.example.com", RegistryAuth::Anonymous),
            ("example.com", RegistryAuth::Anonymous),
        ] {
            assert_eq!(of(Some(&file), registry).unwrap(), expected, "{registry}");
        }
        for registry in ["kept.example.com", "ecr.example.com"] {
            assert!(of(Some(&file), registry).unwrap_err().contains("credential helper"), "{registry}");
        }
        assert_eq!(of(None, "registry.example.com").unwrap(), RegistryAuth::Anonymous);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        assert!(of(Some(&file), "r.example").unwrap_err().contains("config.json: No such file"));
        std::fs::write(&file, "{ hush").unwrap();
        let told = of(Some(&file), "r.example").unwrap_err();
        assert!(told.contains("it is no JSON") && !told.contains("hush"), "{told}");
    }
}
