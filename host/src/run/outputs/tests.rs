//! What is told of outputs, what they are granted, and what they share.

use super::*;
use crate::config::S3Grant;

fn plan(buckets: &[&str], log_groups: &[&str]) -> Plan {
    let scope = |bucket: &&str| S3Grant { bucket: (*bucket).into(), key_prefix: "logs/".into() };
    Plan {
        partition_by: vec![],
        in_order: false,
        record_overhead: 0,
        max_bytes: None,
        max_records: None,
        max_age: None,
        s3: buckets.iter().map(scope).collect(),
        log_groups: log_groups.iter().map(|name| (*name).into()).collect(),
        http: vec![],
        credentials: vec![],
    }
}

fn credential(name: &str) -> Credential {
    let token = crate::config::SecretSource::File("/token".into());
    Credential { name: name.into(), to: vec![], kind: crate::config::CredentialKind::Bearer { token } }
}

/// An output with these lines added.
fn output(lines: &str) -> OutputConfig {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!("sources:\n  app: {{ type: stdin }}\noutputs:\n  live:\n    match: \"*\"\n{lines}");
    Config::parse(&text, "wharf.yaml".as_ref(), &|_| None).unwrap().outputs.remove(0)
}

#[test]
fn a_missing_grant_does_not_show_a_name_from_the_environment() {
    let text = "sources:\n  app: { type: stdin }\noutputs:\n  live: { plugin: ./own.wasm, match: \"*\", config: { to: \"${B}\" } }\n";
    let variable = |name: &str| (name == "B").then(|| "hush-bucket".to_owned());
    let own = Config::parse(text, "wharf.yaml".as_ref(), &variable).unwrap().outputs.remove(0);
    let told = |plan: &Plan| ungranted(&own, plan, Some(&[])).iter().map(ToString::to_string).collect::<String>();
    let hidden = told(&plan(&["hush-bucket"], &[]));
    let expected = "wharf.yaml:4:19: outputs.live.plugin: the plugin wants to reach something that the environment variable B names, and has no grant for it\n";
    assert!(hidden.starts_with(expected) && !hidden.contains("hush"), "{hidden}");
    assert!(told(&plan(&["b"], &[])).contains("write to s3 bucket \"b\""));
}

#[test]
fn neither_a_name_nor_a_digest_nor_a_folder_from_the_environment_is_shown() {
    let variable = |name: &str| match name {
        "DIR" => Some("hush-folder".to_owned()),
        "PLUGIN" => Some("hush-name".to_owned()),
        "PIN" => Some("5".repeat(64)),
        _ => None,
    };
    let told = |lines: &str, error: &LoadError| {
        let text = format!(
            "plugins: {{ dir: [\"${{DIR}}\"] }}\nsources:\n  app: {{ type: stdin }}\noutputs:\n  live:\n    match: \"*\"\n{lines}"
        );
        let output = Config::parse(&text, "wharf.yaml".as_ref(), &variable).unwrap().outputs.remove(0);
        not_loaded(&output, error, &[]).to_string()
    };
    let unknown = LoadError::Unknown {
        name: "hush-name".into(),
        known: "built in are s3 and cloudwatch_logs; hush-folder has hush-names".into(),
        help: Some("did you mean \"hush-names\"?".into()),
    };
    assert_eq!(
        told("    plugin: own", &unknown),
        "wharf.yaml:7:13: outputs.live.plugin: the plugin that the environment variable DIR names: there is none of this name"
    );
    assert_eq!(
        told("    plugin: ${PLUGIN}", &unknown),
        "wharf.yaml:7:13: outputs.live.plugin: the plugin that the environment variables DIR and PLUGIN names: there is none of this name"
    );
    let untrusted =
        LoadError::Untrusted { name: "a".into(), what: "there is no hush.sig".into(), help: "sign hush".into() };
    assert_eq!(
        told("    plugin: ./a.wasm\n    signature: ${PLUGIN}", &untrusted),
        "wharf.yaml:7:13: outputs.live.plugin: the plugin that the environment variable PLUGIN names: it is not signed by a trusted key"
    );
    let other = LoadError::OtherDigest { name: "own.wasm".into(), pinned: "5".repeat(64), found: "a".repeat(64) };
    let expected = format!(
        "wharf.yaml:8:13: outputs.live.sha256: the plugin is pinned to another SHA-256 than that of what is there, which is {}\n    \
         help: put the component that was meant back, or pin this one",
        "a".repeat(64)
    );
    assert_eq!(told("    plugin: ./own.wasm\n    sha256: ${PIN}", &other), expected);
}

#[test]
fn an_account_in_a_region_is_one_destination_whatever_its_log_groups_are() {
    let name = |aws: &str, groups: &[&str]| {
        destination_name(&output(&format!("plugin: cloudwatch_logs\naws: {{ {aws} }}")), &plan(&[], groups))
    };
    let one = name("region: us-east-1", &["/a"]);
    assert_eq!(one, name("region: us-east-1", &["/b", "/c*"]));
    for other in [
        name("region: eu-west-1", &["/a"]),
        name("region: us-east-1, role_arn: \"arn:aws:iam::123456789012:role/r\"", &["/a"]),
        name("region: us-east-1, profile: p", &["/a"]),
        name("region: us-east-1, endpoint: \"http://127.0.0.1:9\"", &["/a"]),
        destination_name(&output("plugin: s3\naws: { region: us-east-1 }"), &plan(&["a"], &[])),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn tenants_that_name_the_same_bucket_do_not_hold_each_other_up() {
    let text = "tenants:\n  acme: { outputs: { o: { plugin: s3, match: \"*\" } } }\n  globex: { outputs: { o: { plugin: s3, match: \"*\" } } }\n";
    let config = Config::parse(text, "wharf.yaml".as_ref(), &|_| None).unwrap();
    let [acme, globex] = config.outputs.as_slice() else { panic!("two outputs") };
    assert_ne!(destination_name(acme, &plan(&["b"], &[])), destination_name(globex, &plan(&["b"], &[])));
}

#[test]
fn a_source_is_unwanted_where_the_outputs_of_some_sender_do_not_want_its_tag() {
    let unwanted = |tokens: &str| {
        let text = format!(
            "sources:\n  web: {{ type: http, listen: \"127.0.0.1:1\", tag: x, tokens: [{tokens}] }}\n\
             outputs:\n  o: {{ plugin: s3, match: y }}\ntenants:\n  \
             acme: {{ outputs: {{ o: {{ plugin: s3, match: x }} }} }}\n  globex: {{ tags: x, outputs: {{ o: {{ plugin: s3, match: y }} }} }}\n"
        );
        let config = Config::parse(&text, "wharf.yaml".as_ref(), &|_| None).unwrap();
        !unwanted_sources(&config).is_empty()
    };
    let token = |n: u8, tenant: &str| format!("{{ token: token-number-000{n}{tenant} }}");
    assert!(!unwanted(&token(1, ", tenant: acme")));
    assert!(unwanted(&token(1, ", tenant: globex")));
    assert!(unwanted(&[token(1, ", tenant: acme"), token(2, ", tenant: globex")].join(", ")));
    // Whose the tag is: globex, whose output does not want it.
    assert!(unwanted(&token(1, "")));
}

#[test]
fn a_server_and_a_credential_are_one_destination_however_they_are_written() {
    let own = output("plugin: ./own.wasm");
    let name = |http: &str, credentials: &[&str]| {
        let credentials = credentials.iter().map(|name| (*name).into()).collect();
        destination_name(&own, &Plan { http: vec![http.into()], credentials, ..plan(&[], &[]) })
    };
    let one = name("https://api.example.com", &["ingest"]);
    assert_eq!(one, name("HTTPS://API.example.com:443/", &["ingest"]));
    for other in [
        name("https://api.example.com", &["another"]),
        name("https://api.example.com", &[]),
        name("https://eu.example.com", &["ingest"]),
        name("http://api.example.com", &["ingest"]),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn what_a_plugin_wants_to_send_by_http_is_asked_for_with_the_line_that_grants_it() {
    let http = ["https://api.example.com", "https://x.example.com:8443"].map(str::to_owned).to_vec();
    let plan = Plan { http, credentials: vec!["ingest".into()], ..plan(&[], &[]) };
    let own = output("plugin: ./own.wasm\ngrants: { http: [\"https://*.example.com\"] }");
    let told: Vec<String> =
        ungranted(&own, &plan, Some(&[credential("ingest")])).iter().map(ToString::to_string).collect();
    assert_eq!(
        told.join("\n"),
        "wharf.yaml:6:13: outputs.live.plugin: the plugin wants to send requests to \"https://x.example.com:8443\", and has no grant for it\n    \
         help: if it may, add to the output: grants: { http: [\"https://x.example.com:8443\"] }\n\
         wharf.yaml:6:13: outputs.live.plugin: the plugin wants to use the credential \"ingest\", and has no grant for it\n    \
         help: if it may, add to the output: grants: { credentials: [\"ingest\"] }"
    );
}

#[test]
fn a_credential_that_is_defined_nowhere_is_told_with_the_nearest_that_is() {
    let plan = Plan { credentials: vec!["kye".into()], ..plan(&[], &[]) };
    let own = output("plugin: ./own.wasm");
    let told = |defined: Option<&[Credential]>| -> Vec<String> {
        ungranted(&own, &plan, defined).iter().map(ToString::to_string).collect()
    };
    let fault = |guess: &str| {
        format!(
            "wharf.yaml:6:13: outputs.live.plugin: the plugin wants to use the credential \"kye\", and there is none of this name{guess}\n    \
             help: define it under \"credentials\" at the top level, and add to the output: grants: {{ credentials: [\"kye\"] }}"
        )
    };
    assert_eq!(told(Some(&[credential("other"), credential("key")])), [fault("; did you mean \"key\"?")]);
    assert_eq!(told(Some(&[credential("other")])), [fault("")]);
    // Where one of them is faulty, that has been told, and it may be this one.
    assert_eq!(told(None), Vec::<String>::new());
}

#[test]
fn a_path_that_leads_nowhere_is_told_with_the_name_that_the_plugin_folder_has_for_it() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["my-output.wasm", "s3.wasm"] {
        std::fs::write(dir.path().join(file), b"").unwrap();
    }
    let help = |plugin: &str| {
        let cause = std::io::ErrorKind::NotFound.into();
        let error = LoadError::Read { name: plugin.to_owned(), cause };
        not_loaded(&output(&format!("plugin: {plugin}")), &error, &[dir.path().to_owned()]).help
    };
    let meant = "what lies in plugins.dir is named without .wasm: write plugin: my-output";
    assert_eq!(help("my-output.wasm").as_deref(), Some(meant));
    let begins = "a relative path begins at the configuration file's folder";
    assert_eq!(help("another.wasm").as_deref(), Some(begins));
    assert_eq!(help("s3.wasm").as_deref(), Some(begins));
}

#[test]
fn a_built_in_output_is_granted_what_it_plans_and_another_one_what_is_written_down() {
    let plan = plan(&["b"], &["/app", "/web*"]);
    let names = |grants: &GrantsConfig| -> Vec<String> {
        grants.cloudwatch_logs.iter().map(|grant| grant.log_group.clone()).collect()
    };
    let built_in = output("plugin: cloudwatch_logs");
    assert_eq!(ungranted(&built_in, &plan, Some(&[])), []);
    let granted = grants(&built_in, &plan);
    assert_eq!((names(&granted), granted.s3), (vec!["/app".to_owned(), "/web*".to_owned()], plan.s3.clone()));

    let own = output("plugin: ./own.wasm\ngrants: { cloudwatch_logs: [{ log_group: /app }] }");
    assert_eq!(names(&grants(&own, &plan)), ["/app"]);
    let told: Vec<String> = ungranted(&own, &plan, Some(&[])).iter().map(ToString::to_string).collect();
    assert_eq!(
        told.join("\n"),
        "wharf.yaml:6:13: outputs.live.plugin: the plugin wants to write to s3 bucket \"b\", keys \"logs/\"…, and has no grant for it\n    \
         help: if it may, add to the output: grants: { s3: [{ bucket: \"b\", key_prefix: \"logs/\" }] }\n\
         wharf.yaml:6:13: outputs.live.plugin: the plugin wants to write to log group \"/web*\", and has no grant for it\n    \
         help: if it may, add to the output: grants: { cloudwatch_logs: [{ log_group: \"/web*\" }] }"
    );
}

#[test]
fn a_bucket_that_amazon_cannot_have_is_told_unless_it_may_be_on_another_server() {
    let told = |lines: &str, bucket: &str, elsewhere| no_buckets(&output(lines), &plan(&[bucket], &[]), elsewhere);
    let expected = "the bucket's name has fewer than 3 characters, and those of Amazon S3 have not; if it is on another server, name that: aws: { endpoint: … }";
    assert_eq!(told("plugin: s3", "ab", false), [expected]);
    assert!(told("plugin: s3", "ab", true).is_empty() && told("plugin: s3", "abc", false).is_empty());
    assert!(told("plugin: s3\naws: { region: us-east-1 }", "Old_Logs", false).is_empty());
    assert_eq!(told("plugin: s3\naws: { region: eu-west-1 }", "Old_Logs", false).len(), 1);
}
