//! Two tenants behind one port: each object only in its tenant's bucket, each limit only its tenant's.

use std::net::{Ipv4Addr, SocketAddr};

use wharf_e2e::{Place, command, free_port, http, wharf_binary};
use wharf_local_aws::{Options, S3};

const ACME: &str = "acme-token-0123456789";
const GLOBEX: &str = "globex-token-0123456789";

fn post(to: SocketAddr, token: Option<&str>, line: &str, count: usize) -> http::Answer {
    let authorization = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
    let mut headers = vec![("Content-Type", "text/plain")];
    headers.extend(token.map(|_| ("Authorization", authorization.as_str())));
    http::request(to, "POST", "/", &headers, format!("{line}\n").repeat(count).as_bytes()).unwrap()
}

/// One tenant in the configuration, the other in a file; the same names of output and counter.
fn place(s3: &S3) -> (Place, SocketAddr) {
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    let output = |bucket: &str, age: &str| {
        format!(
            "outputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    batch: {{ max_bytes: 10MB, max_age: {age} }}\n    \
             config: {{ bucket: {bucket}, key_format: /logs/segment_$INDEX }}\n"
        )
    };
    let indented: String = output("acme-logs", "1h").lines().map(|line| format!("    {line}\n")).collect();
    let config = format!(
        "tenants_dir: tenants.d\ntenant_defaults: {{ limits: {{ journal: 1GB }} }}\n\
         tenants:\n  acme:\n    limits: {{ journal: 300KB }}\n{indented}\
         sources:\n  ingest:\n    type: http\n    listen: \"127.0.0.1:{port}\"\n    tokens:\n      - {{ token: {ACME}, tenant: acme }}\n      \
         - {{ token: {GLOBEX}, tenant: globex }}\n"
    );
    place.configure(&s3.endpoint(), &config).unwrap();
    std::fs::create_dir(place.root().join("tenants.d")).unwrap();
    std::fs::write(place.root().join("tenants.d/globex.yaml"), output("globex-logs", "100ms")).unwrap();
    (place, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Of each object: its bucket, its key, and how many lines of acme's and of globex's it has.
fn objects(s3: &S3) -> Vec<(String, String, usize, usize)> {
    let count = |body: &[u8], line: &str| String::from_utf8_lossy(body).matches(line).count();
    let objects = s3.objects();
    let mut found: Vec<_> = objects
        .iter()
        .map(|o| {
            let key = o.key.trim_start_matches('/').to_owned();
            (o.bucket.clone(), key, count(&o.body, "line of acme"), count(&o.body, "line of globex"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn what_tenants_send_reaches_their_own_buckets_and_one_at_its_limit_holds_up_no_other() {
    let buckets = vec!["acme-logs".to_owned(), "globex-logs".to_owned()];
    let s3 = S3::start(Options { buckets, ..Options::default() }).unwrap();
    let (place, to) = place(&s3);
    let mut wharf = place.start().unwrap();

    for token in [None, Some("somebody-elses-token"), Some(&ACME[1..])] {
        assert_eq!(post(to, token, "a line of nobody", 1).status, 401);
    }
    assert_eq!(post(to, Some(ACME), "a line of acme", 3).status, 200);
    assert_eq!(post(to, Some(GLOBEX), "a line of globex", 4).status, 200);
    wharf.wait_until("the other tenant's lines are delivered", 30, || !objects(&s3).is_empty());
    assert_eq!(objects(&s3)[0].0, "globex-logs");

    // Acme's batch is not due for an hour, so its share of the disk fills up.
    let mut taken = 3;
    let refused = loop {
        let answer = post(to, Some(ACME), "a line of acme", 1000);
        match answer.status {
            200 => taken += 1000,
            _ => break answer,
        }
        assert!(taken < 100_000, "the limit never comes");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    let said = refused.text();
    assert!(said.contains("tenant acme is at its limit: limits.journal allows 300 KB, "), "{said}");
    assert_eq!(post(to, Some(GLOBEX), "a line of globex", 1000).status, 200);
    assert!(place.admin("/ready").unwrap().status == 200, "a tenant's limit takes the host from nobody");

    let metric = |name: &str, labels: &[&str]| place.metric(name, labels);
    assert_eq!(metric("wharf_source_refused_requests_total", &["source=\"ingest\"", "reason=\"auth\""]), Some(3.0));
    assert_eq!(metric("wharf_tenant_refused_total", &["tenant=\"acme\"", "limit=\"journal\""]), Some(1.0));
    assert_eq!(metric("wharf_tenant_refused_total", &["tenant=\"globex\""]), Some(0.0));
    assert_eq!(metric("wharf_durable_records_total", &["output=\"archive\"", "tenant=\"acme\""]), Some(taken as f64));
    let health: serde_json::Value = serde_json::from_str(&place.admin("/health").unwrap().text()).unwrap();
    assert_eq!(
        (&health["tenants"][0]["name"], &health["tenants"][0]["journal_limit_bytes"]),
        (&"acme".into(), &300_000.into())
    );
    assert_eq!(
        (&health["outputs"][0]["name"], &health["outputs"][0]["tenant"]),
        (&"acme/archive".into(), &"acme".into())
    );

    wharf.stop();
    let objects = objects(&s3);
    let of = |bucket: &str| -> Vec<_> { objects.iter().filter(|(of, ..)| of == bucket).collect() };
    let sums = |bucket: &str| {
        of(bucket).iter().fold((0, 0), |(a, g), (_, _, of_acme, of_globex)| (a + of_acme, g + of_globex))
    };
    assert_eq!((sums("acme-logs"), sums("globex-logs")), ((taken, 0), (0, 1004)), "{objects:?}");
    // Each counts for itself.
    assert_eq!(of("acme-logs")[0].1, of("globex-logs")[0].1);
}

#[test]
fn a_tenant_is_removed_with_what_it_has_when_that_is_said_and_its_gauges_go_with_it() {
    let buckets = vec!["acme-logs".to_owned(), "globex-logs".to_owned()];
    let s3 = S3::start(Options { buckets, ..Options::default() }).unwrap();
    let (place, to) = place(&s3);
    let mut wharf = place.start().unwrap();
    assert_eq!(post(to, Some(ACME), "a line of acme", 3).status, 200);
    let of_acme = |name: &str| place.metric(name, &["tenant=\"acme\""]);
    wharf.wait_until("what acme has is shown", 30, || of_acme("wharf_tenant_queue_bytes") > Some(0.0));

    let port = to.port();
    let without = format!(
        "tenants_dir: tenants.d\ntenant_defaults: {{ limits: {{ journal: 1GB }} }}\nsources:\n  ingest:\n    type: http\n    \
         listen: \"127.0.0.1:{port}\"\n    tokens: [{{ token: {GLOBEX}, tenant: globex }}]\n"
    );
    place.configure(&s3.endpoint(), &without).unwrap();
    let (status, answer) = place.reload("{}").unwrap();
    assert_eq!((status, &answer["undelivered"][0]["output"]), (422, &"acme/archive".into()), "{answer:#}");
    let (status, answer) = place.reload(r#"{"discard": ["acme/"]}"#).unwrap();
    assert_eq!((status, &answer["discarded"][0]["records"]), (200, &3.into()), "{answer:#}");

    for gauge in ["wharf_tenant_queue_bytes", "wharf_tenant_lane_bytes", "wharf_tenant_waiting", "wharf_queue_bytes"] {
        assert_eq!(of_acme(gauge), None, "{gauge}");
        assert!(place.metric(gauge, &["tenant=\"globex\""]).is_some(), "{gauge}");
    }
    assert_eq!(of_acme("wharf_tenant_accepted_records_total"), Some(3.0), "what was counted stays");
    assert_eq!(post(to, Some(GLOBEX), "a line of globex", 1).status, 200);
    assert_eq!(post(to, Some(ACME), "a line of acme", 1).status, 401);
    wharf.stop();
}

#[test]
fn the_example_is_valid_and_its_tenants_are_shown() {
    let file = wharf_task_kit::repository().unwrap().join("examples/tenants/wharf.yaml");
    let ended = command(wharf_binary().unwrap()).args(["validate", "-c"]).arg(&file).output().unwrap();
    let (shown, told) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{told}");
    for part in [
        "2 sources, 3 outputs, 2 tenants",
        "TENANT  SHARE  TAGS    SOURCES  OUTPUTS  AWS IDENTITY",
        "arn:aws:iam::111111111111:role/wharf-delivery with external id",
        "journal 20 GB, 5 MB/s, 20000 records/s, 4 outputs, 8 workers",
        "globex/archive",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!shown.contains("warning"), "{shown}");
}

#[test]
fn a_tenant_that_could_act_for_another_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wharf.yaml");
    let tenant = |name: &str, aws: &str| {
        format!(
            "  {name}: {{ {aws} outputs: {{ o: {{ plugin: s3, match: \"*\", config: {{ bucket: logs, key_format: /$INDEX }} }} }} }}\n"
        )
    };
    let role = |account: &str| format!("role_arn: \"arn:aws:iam::{account}:role/r\"");
    let text = [
        "sources:\n  in: { type: http, listen: \"127.0.0.1:1\" }\ntenants:\n".to_owned(),
        tenant("host", ""),
        tenant("open", &format!("aws: {{ {} }},", role("111111111111"))),
        tenant("one", &format!("aws: {{ {}, external_id: same }},", role("222222222222"))),
        tenant("two", &format!("aws: {{ {}, external_id: same }},", role("333333333333"))),
        tenant("good", &format!("aws: {{ {}, external_id: other }},", role("444444444444"))),
    ];
    std::fs::write(&file, text.concat()).unwrap();
    let ended = command(wharf_binary().unwrap()).args(["validate", "-c"]).arg(&file).output().unwrap();
    let (shown, told) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{told}");
    let warnings: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    let begin = [
        "no output's `match` wants the tag of source in: its records would be counted as dropped",
        "tenant host has no AWS identity of its own: ",
        "tenant open has a role without an external id: ",
        "tenants one and two have the same external id",
        "tenants two and one have the same external id",
    ];
    assert_eq!(warnings.len(), begin.len(), "{shown}");
    assert!(warnings.iter().zip(begin).all(|(warning, begin)| warning.starts_with(begin)), "{warnings:#?}");
}

/// The table of threats says which test shows what stops each: they are there.
#[test]
fn the_tests_that_the_table_of_threats_names_exist() {
    fn sources(folder: &std::path::Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    for folder in ["host/src", "tests/e2e/tests"] {
        sources(&repository.join(folder), &mut all);
    }
    let page = std::fs::read_to_string(repository.join("docs/multi-tenancy.md")).unwrap();
    let table = page.split("## Threats").nth(1).unwrap();
    let named: Vec<&str> = table
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.matches('_').count() > 3 && !word.contains(['.', ' ']))
        .collect();
    assert!(named.len() > 15, "{named:?}");
    for test in named {
        assert!(all.contains(&format!("fn {test}()")), "there is no test {test}");
    }
}
