//! The local S3 server itself, held against what boto3 expects of S3: the other tests stand on it.

use std::time::Duration;

use wharf_e2e::skip::skip;
use wharf_e2e::{script, tools};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::support::s3;

#[test]
fn the_local_server_behaves_as_s3_and_its_faults_are_seen_by_an_independent_client() {
    let test = "the_local_server_behaves_as_s3_and_its_faults_are_seen_by_an_independent_client";
    let venv = match tools::venv() {
        Ok(venv) => venv,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let s3 = s3();
    let faults = s3.faults();
    for code in
        ["SlowDown", "InternalError", "AccessDenied", "ExpiredToken", "ConditionalRequestConflict", "NoSuchBucket"]
    {
        faults.add(Rule::on(Operation::PutObject, Fault::Error(code)).key(&format!("fault-{code}")));
    }
    for (key, fault) in [
        ("fault-early", Fault::EarlyError("SlowDown")),
        ("fault-reset", Fault::Reset { after: 100_000 }),
        ("fault-lost", Fault::LoseReply),
        ("fault-stall", Fault::Stall(Duration::from_millis(600))),
        ("fault-late", Fault::StallReply(Duration::from_secs(3))),
    ] {
        faults.add(Rule::on(Operation::PutObject, fault).key(key));
    }
    let inside = Fault::ErrorInside200 { code: "InternalError", performed: false };
    faults.add(Rule::on(Operation::CompleteMultipartUpload, inside).key("inside-200"));

    let said = tools::python(&venv, &script("check_server.py").unwrap(), &[&s3.endpoint()]).unwrap();
    println!("{said}");
    assert_eq!(said.lines().count(), 7, "not every check was run");
    assert_eq!(s3.overwrites(), ["race-0"], "the one attempt to overwrite is on record");
    let conflicts =
        s3.requests().iter().filter(|request| request.code.as_deref() == Some("PreconditionFailed")).count();
    assert!(conflicts >= 70, "{conflicts} of at least 70 lost races are on record");
}

#[test]
fn the_server_keeps_its_port_and_objects_over_a_restart() {
    let mut s3 = s3();
    s3.place("logs", "a", "x");
    let endpoint = s3.endpoint();
    s3.stop();
    s3.restart().unwrap();
    assert_eq!(s3.endpoint(), endpoint);
    assert_eq!(s3.object("logs", "a").unwrap().body, "x");
}
