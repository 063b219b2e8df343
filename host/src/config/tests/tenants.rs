//! `tenants`, `tenants_dir`, `tenant_defaults`, and what names tenants.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::config::{IngestLimits, LettersPlace, SourceKind, TenantLimits};

const HOST_ROLE: &str = "arn:aws:iam::111111111111:role/host";
const ACME_ROLE: &str = "arn:aws:iam::222222222222:role/acme";

/// A folder with a configuration and the files of tenants.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tenants")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join("tenants").join(name), text).unwrap();
        }
        Self(folder)
    }

    fn parse(&self, text: &str) -> Result<Config, Faults> {
        let variable = |name: &str| match name {
            "TENANT_ACME__BUCKET" => Some("acme-bucket".to_owned()),
            "AWS_SECRET_ACCESS_KEY" | "TENANT_GLOBEX__KEY" => Some("hush".to_owned()),
            _ => None,
        };
        Config::parse(text, &self.0.path().join("wharf.yaml"), &variable)
    }

    /// The faults, with the folder's name left out.
    fn faults(&self, text: &str) -> String {
        let faults = self.parse(text).expect_err("there are faults").to_string();
        faults.replace(&format!("{}/", self.0.path().display()), "")
    }
}

/// A tenant that has these lines and an output.
fn tenant(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("tenants:\n  acme:\n    outputs: {{ archive: {{ plugin: s3, match: \"*\" }} }}\n{lines}")
}

fn acme(lines: &str) -> crate::config::TenantConfig {
    parse(&tenant(lines)).unwrap().tenants.remove(0)
}

#[test]
fn a_tenants_sources_and_outputs_have_its_name_before_theirs() {
    let text = "sources:\n  app: { type: stdin }\noutputs:\n  archive: { plugin: s3, match: \"*\" }\ntenants:\n  acme:\n    share: 3\n    tags: [\"acme.*\", acme]\n    \
                sources: { app: { type: tail, paths: [/a] } }\n    outputs: { archive: { plugin: s3, match: \"*\" } }\n";
    let config = parse(text).unwrap();
    let sources: Vec<_> = config.sources.iter().map(|s| (&*s.name, s.tenant.as_deref(), &*s.tag)).collect();
    assert_eq!(sources, [("app", None, "app"), ("acme/app", Some("acme"), "app")]);
    let outputs: Vec<_> = config.outputs.iter().map(|o| (&*o.name, o.tenant.as_deref())).collect();
    assert_eq!(outputs, [("archive", None), ("acme/archive", Some("acme"))]);
    let tenant = config.tenant("acme").unwrap();
    assert_eq!((tenant.share, tenant.tags.clone()), (3, vec!["acme.*".to_owned(), "acme".to_owned()]));
    assert_eq!((tenant.own_identity, tenant.limits), (false, TenantLimits::default()));
}

#[test]
fn limits_are_read_over_those_of_all_tenants() {
    let defaults =
        "tenant_defaults: { limits: { journal: 1GB, ingest: { bytes: 1MB, records: 500 }, outputs: 4, workers: 9 } }\n";
    let read = |lines: &str| parse(&format!("{defaults}{}", tenant(lines))).unwrap().tenants.remove(0).limits;
    let all = TenantLimits {
        journal_bytes: Some(1_000_000_000),
        ingest: IngestLimits {
            bytes_per_second: Some(1_000_000),
            records_per_second: Some(500),
            burst: Duration::from_secs(10),
        },
        outputs: Some(4),
        sources: None,
        workers: Some(9),
    };
    assert_eq!(read(""), all);
    let ingest = IngestLimits { records_per_second: Some(7), burst: Duration::from_secs(60), ..all.ingest };
    assert_eq!(
        read("limits: { journal: 2GB, ingest: { records: 7, burst: 1m }, sources: 2 }"),
        TenantLimits { journal_bytes: Some(2_000_000_000), ingest, sources: Some(2), ..all }
    );
}

#[test]
fn a_tenant_that_has_more_than_it_may_is_refused_with_both_numbers() {
    let text = tenant(
        "limits: { outputs: 0, sources: 1, workers: 0 }\nsources:\n  a: { type: tail, paths: [/a] }\n  b: { type: tail, paths: [/b] }",
    );
    let help = "help: take some out, or raise the tenant's limit, or that of tenant_defaults";
    assert_eq!(
        faults(&text),
        format!(
            "wharf.yaml:3:14: tenants.acme.outputs: the tenant has 1 outputs, and may have 0 (limits.outputs)\n    {help}\n\
             wharf.yaml:3:14: tenants.acme.outputs: the tenant has 1 workers, and may have 0 (limits.workers)\n    {help}\n\
             wharf.yaml:6:5: tenants.acme.sources: the tenant has 2 sources, and may have 1 (limits.sources)\n    {help}"
        )
        .replace("wharf.yaml:6:5", "wharf.yaml:6:7")
    );
}

#[test]
fn a_tenants_role_stands_alone_and_is_told_apart_in_cloudtrail() {
    let with = |aws: &str, lines: &str| {
        let config = parse(&format!("aws: {{ region: eu-west-1, {aws} }}\n{}", tenant(lines))).unwrap();
        let tenant = config.tenants[0].clone();
        assert_eq!(config.outputs[0].aws, tenant.aws, "its output is the same one");
        tenant
    };
    let host = format!("role_arn: \"{HOST_ROLE}\", external_id: of-the-host, profile: host");
    let inherited = with(&host, "");
    assert_eq!((inherited.own_identity, inherited.aws.role_arn.as_deref()), (false, Some(HOST_ROLE)));

    let own = with(&host, &format!("aws: {{ role_arn: \"{ACME_ROLE}\" }}"));
    assert_eq!((own.own_identity, own.aws.role_arn.as_deref()), (true, Some(ACME_ROLE)));
    assert_eq!((own.aws.external_id, own.aws.profile), (None, None), "the host's go with the host's role");
    assert_eq!((own.aws.session_name.as_deref(), own.aws.region.as_deref()), (Some("wharf-acme"), Some("eu-west-1")));

    let profile = with(&host, "aws: { profile: acme }");
    assert_eq!((profile.own_identity, profile.aws.profile.as_deref()), (true, Some("acme")));
    assert_eq!(profile.aws.role_arn, None);
    assert!(!with(&host, "aws: { region: us-east-1 }").own_identity);
}

#[test]
fn no_output_of_a_tenant_is_somebody_else() {
    let text = format!(
        "tenants:\n  acme:\n    aws: {{ role_arn: \"{ACME_ROLE}\", external_id: x1 }}\n    outputs:\n      archive:\n        plugin: s3\n        match: \"*\"\n        \
         aws: {{ region: eu-west-1, endpoint: \"https://s3.example.com\", role_arn: \"{HOST_ROLE}\", external_id: x2, profile: p }}\n"
    );
    let faults = faults(&text);
    for key in ["role_arn", "external_id", "profile"] {
        let expected =
            format!("tenants.acme.outputs.archive.aws.{key}: all outputs of a tenant have the tenant's identity");
        assert!(faults.contains(&expected), "{faults}");
    }
    assert_eq!(faults.matches("wharf.yaml:").count(), 3, "{faults}");
}

#[test]
fn the_operators_credentials_are_none_of_a_tenants() {
    let text = "credentials:\n  shared: { type: bearer, token: x, to: [https://a.example.com] }\ntenants:\n  acme:\n    \
                credentials: { own: { type: bearer, token: y, to: [https://a.example.com] } }\n    outputs:\n      \
                o: { plugin: ./o.wasm, match: \"*\", grants: { credentials: [own, shared] } }\n";
    assert_eq!(
        faults(text),
        "wharf.yaml:7:71: tenants.acme.outputs.o.grants.credentials[1]: there is no credential \"shared\"\n    \
         help: define it under tenants.acme.credentials: the operator's are none of a tenant's"
    );
}

#[test]
fn a_tag_has_one_tenant() {
    let text = "tenants:\n  acme: { tags: [\"a.*\"], outputs: { x: { plugin: s3, match: \"*\" } } }\n  \
                globex: { tags: [\"g\", \"a.*\"], outputs: { x: { plugin: s3, match: \"*\" } } }\n";
    assert_eq!(
        faults(text),
        "wharf.yaml:3:19: tenants.globex.tags: tenant acme has the tag \"a.*\" already, and records have one tenant"
    );
}

#[test]
fn names_that_cannot_be_and_keys_that_are_elsewhere_are_told() {
    let outputs = "outputs: { x: { plugin: s3, match: \"*\" } }";
    let told = faults(&format!(
        "tenants:\n  Acme: {{ {outputs} }}\n  replay: {{ {outputs} }}\n  x: {{ {outputs}, weight: 2, journal: 1GB }}\n"
    ));
    for part in [
        "2:3: tenants: \"Acme\" cannot be the name of a tenant",
        "3:3: tenants: the name \"replay\" is Wharf's own",
        "unknown key \"weight\"; did you mean \"share\"?",
        "unknown key \"journal\"; there is one for all tenants, at the top level; a tenant's part of it is limits.journal",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(faults("tenants:\n  acme: {}\n").contains("tenants.acme: the key \"outputs\" is missing"));
    let text = format!("limits: {{ journal: 1GB }}\n{}", tenant(""));
    assert!(faults(&text).contains("write tenant_defaults: { limits: … }"), "{}", faults(&text));
}

#[test]
fn each_file_of_the_directory_is_a_tenant_and_other_files_are_none() {
    let output =
        "outputs:\n  archive: { plugin: s3, match: \"*\", config: { bucket: \"${TENANT_ACME__BUCKET:-b}\" } }\n";
    let folder = Folder::with(&[
        ("acme.yaml", output),
        ("zeta.yaml", "tags: [zeta]\noutputs:\n  a: { plugin: ./own.wasm, match: \"*\" }\n"),
        (".acme.yaml.swp", "\0"),
        ("README.md", "# not a tenant"),
        ("acme.yaml~", "x"),
    ]);
    // As Kubernetes mounts a ConfigMap.
    std::fs::create_dir(folder.0.path().join("tenants/..data")).unwrap();
    std::fs::create_dir(folder.0.path().join("tenants/zeta")).unwrap();
    let config = folder
        .parse("tenants_dir: tenants\ntenants:\n  inline: { outputs: { o: { plugin: s3, match: \"*\" } } }\n")
        .unwrap();
    let names: Vec<&str> = config.tenants.iter().map(|tenant| &*tenant.name).collect();
    assert_eq!(names, ["inline", "acme", "zeta"]);
    let outputs: Vec<&str> = config.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(outputs, ["inline/o", "acme/archive", "zeta/a"]);
    assert_eq!(config.outputs[1].config["bucket"], "acme-bucket");
    // A component is looked for in the tenant's own folder.
    let own = folder.0.path().join("tenants/zeta/./own.wasm");
    assert_eq!(config.outputs[2].plugin_source, crate::plugin::PluginSource::File(own));
    assert_eq!(config.tenants_dir.as_deref(), Some(folder.0.path().join("tenants").as_path()));
}

#[test]
fn an_empty_directory_is_no_fault_and_one_that_is_not_there_is() {
    let folder = Folder::with(&[]);
    assert!(folder.parse("tenants_dir: tenants\n").unwrap().tenants.is_empty());
    let faults = folder.faults("tenants_dir: elsewhere\n");
    assert!(faults.starts_with("wharf.yaml:1:14: tenants_dir: \"elsewhere\" cannot be read: "), "{faults}");
}

#[test]
fn faults_of_a_tenants_file_name_it_with_their_line() {
    let folder = Folder::with(&[
        ("acme.yaml", "share: 0\noutputs:\n  archive: { plugin: s3, match: \"*\", bukcet: x }\n"),
        ("broken.yaml", "outputs: [\n"),
        ("Upper.yaml", ""),
        ("other.yml", ""),
        ("twice.yaml", "outputs: { a: { plugin: s3, match: \"*\" } }\n"),
    ]);
    let faults =
        folder.faults("tenants_dir: tenants\ntenants:\n  twice: { outputs: { a: { plugin: s3, match: \"*\" } } }\n");
    for line in [
        "tenants/Upper.yaml: \"Upper\" cannot be the name of a tenant",
        "tenants/acme.yaml:1:8: tenants.acme.share: the number 0 is out of range; it must be 1 to 1000",
        "tenants/acme.yaml:3:38: tenants.acme.outputs.archive: unknown key \"bukcet\"",
        "tenants/broken.yaml:",
        "tenants/other.yml: is no tenant's file: their names end with .yaml\n    help: name it other.yaml",
        "tenants/twice.yaml: there is a tenant \"twice\" in wharf.yaml:3:3 as well",
    ] {
        assert!(faults.contains(line), "{line} is not in {faults}");
    }
}

#[test]
fn a_tenants_file_reads_no_variable_and_no_file_of_anybody_else() {
    let file = "sources:\n  in:\n    type: http\n    listen: 127.0.0.1:0\n    tokens: [{ token_file: /etc/shadow }, { token_file: ../globex/token }]\noutputs:\n  \
                a: { plugin: ../../own.wasm, match: \"${AWS_SECRET_ACCESS_KEY}\" }\n  b: { plugin: s3, match: \"${TENANT_GLOBEX__KEY:-x}\" }\n\
                credentials:\n  leak: { type: bearer, token_file: /proc/self/environ, to: \"https://evil.example.com\" }\n";
    let folder = Folder::with(&[("acme.yaml", file)]);
    let faults = folder.faults("tenants_dir: tenants\n");
    let leads_out = "leads out of the tenant's own folder, and its file may read nothing else\n    help: put it into tenants/acme, where its relative paths begin";
    for line in [
        format!("tenants/acme.yaml:5:28: tenants.acme.sources.in.tokens[0].token_file: text \"/etc/shadow\" {leads_out}"),
        format!("tenants/acme.yaml:5:57: tenants.acme.sources.in.tokens[1].token_file: text \"../globex/token\" {leads_out}"),
        format!("tenants/acme.yaml:7:16: tenants.acme.outputs.a.plugin: {leads_out}"),
        format!("tenants/acme.yaml:10:37: tenants.acme.credentials.leak.token_file: text \"/proc/self/environ\" {leads_out}"),
        "the environment variable AWS_SECRET_ACCESS_KEY is not this tenant's: its file may read those that begin with TENANT_ACME__\n    help: name it TENANT_ACME__…, with two _ "
            .to_owned(),
        "the environment variable TENANT_GLOBEX__KEY is not this tenant's".to_owned(),
    ] {
        assert!(faults.contains(&line), "{line} is not in {faults}");
    }
    assert!(!faults.contains("hush"), "{faults}");
}

#[test]
fn tenants_in_files_are_known_for_their_dead_letters_whole_or_not() {
    let folder = Folder::with(&[("acme.yaml", "shares: 1\noutputs: { archive: { plugin: s3 } }\n")]);
    let text = "data_dir: /d\ntenants_dir: tenants\ntenants:\n  globex: { outputs: { live: { plugin: nonsense } } }\noutputs:\n  own: { plugin: s3, match: \"*\" }\n";
    let place = LettersPlace::parse(text, &folder.0.path().join("wharf.yaml"), &|_| None).unwrap();
    assert_eq!(place.data_dir, Path::new("/d"));
    assert_eq!(place.outputs, ["own", "globex/live", "acme/archive"]);
}

/// A file with the tenants acme and globex, and an operator's source that has these lines.
fn with_source(lines: &str) -> String {
    let output = "outputs: { archive: { plugin: s3, match: \"*\" } }";
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("tenants:\n  acme: {{ {output} }}\n  globex: {{ {output} }}\nsources:\n  in:\n{lines}")
}

#[test]
fn tokens_and_users_name_tenants() {
    let config = parse(&with_source(
        "type: http\nlisten: 127.0.0.1:1\ntokens:\n  - { token: 0123456789abcdef, tenant: acme }\n  - { token_file: /run/token, tenant: globex }\n  - token: of-nobody-in-particular",
    ))
    .unwrap();
    let SourceKind::Http(http) = &config.sources[0].kind else { panic!("http") };
    let tenants: Vec<_> = http.tokens.iter().map(|token| token.tenant.as_deref()).collect();
    assert_eq!(tenants, [Some("acme"), Some("globex"), None]);
    assert_eq!(config.sources[0].senders(), [None, Some("acme"), Some("globex")]);
    assert!(!format!("{config:?}").contains("0123456789abcdef"));

    let config = parse(&with_source(
        "type: forward\nlisten: 127.0.0.1:1\nusers: [{ username: a, password: b, tenant: acme }, { username: c, password: d }]",
    ))
    .unwrap();
    assert_eq!(config.sources[0].senders(), [None, Some("acme")]);
}

#[test]
fn a_token_that_is_none_or_names_nobody_is_told_and_never_shown() {
    let http = |tokens: &str| faults(&with_source(&format!("type: http\nlisten: 127.0.0.1:1\ntokens: {tokens}")));
    for (tokens, expected) in [
        ("[{ token: hush }]", "tokens[0].token: is shorter than 16 characters, and so can be guessed"),
        ("[{ token: \"hushhush hushhush\" }]", "tokens[0].token: has a character that no bearer token has"),
        ("hushhushhushhush", "tokens: expected a list of { token }"),
        ("[hushhushhushhush]", "tokens[0]: expected { token: … } or { token_file: … }"),
        ("[]", "tokens: is empty, so nobody could send anything"),
        ("[{ tenant: acme }]", "tokens[0]: the key \"token\" is missing"),
        (
            "[{ token: hushhushhushhush, tenant: acem }]",
            "tokens[0].tenant: there is no tenant \"acem\"; did you mean \"acme\"?",
        ),
        (
            "[{ token: hushhushhushhush, tenant: acme }, { token: hushhushhushhush, tenant: globex }]",
            "tokens[1]: is the same token as the one of tokens[0]",
        ),
        ("[{ token: hushhushhushhush, token_file: x }]", "only one of both can be"),
        ("[{ value: hushhushhushhush }]", "did you mean \"token\"?"),
    ] {
        let told = http(tokens);
        assert!(told.contains(expected), "{expected} is not in {told}");
        assert!(!told.contains("hush"), "{told}");
    }
    let forward = "type: forward\nlisten: 127.0.0.1:1\nusers: [{ username: a, password: b, tenant: nobody }]";
    assert!(faults(&with_source(forward)).contains("users[0].tenant: there is no tenant \"nobody\""));
}

#[test]
fn what_a_tenants_own_source_takes_in_is_that_tenants() {
    let sources = "sources: { in: { type: http, listen: \"127.0.0.1:1\", tokens: [{ token: 0123456789abcdef, tenant: globex }] } }";
    assert!(
        faults(&tenant(sources)).contains("tokens[0].tenant: the source is acme's, and so is whatever it takes in")
    );
    let sources = sources.replace(", tenant: globex", "");
    assert_eq!(parse(&tenant(&sources)).unwrap().sources[0].senders(), [Some("acme")]);
    assert_eq!(acme("tags: x").tags, ["x"]);
}
