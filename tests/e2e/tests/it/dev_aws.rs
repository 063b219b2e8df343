//! `wharf dev-aws`, used as a person would: started, written to and read by boto3, looked at, ended.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use wharf_e2e::skip::skip;
use wharf_e2e::{Logged, free_port, http, script, tools, wait_until, wharf_binary};

#[test]
fn a_person_can_write_to_dev_aws_see_what_arrived_and_end_it() {
    let test = "a_person_can_write_to_dev_aws_see_what_arrived_and_end_it";
    let venv = match tools::venv() {
        Ok(venv) => venv,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let dev_aws = Command::new(wharf_binary().unwrap())
        .args(["dev-aws", "--listen", &address.to_string(), "--bucket", "first", "--log-group", "/there"])
        // The second call of PutLogEvents; boto3 sends it again.
        .args(["--fault", "PutLogEvents=ThrottlingException,nth=2"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("dev-aws answers", 30, || http::get(address, "/_wharf").is_ok());
    let endpoint = format!("http://{address}");
    tools::python(&venv, &script("write_logs.py").unwrap(), &[&endpoint, "/made"]).unwrap();
    tools::python(&venv, &script("s3_client.py").unwrap(), &["make-bucket", &endpoint, "second"]).unwrap();
    let read = Logged::read_back(&endpoint, "/made").unwrap();
    assert_eq!(read.messages("b"), ["b 0", "b 1", "b 2"]);

    let shown: serde_json::Value = serde_json::from_str(&http::get(address, "/_wharf").unwrap().text()).unwrap();
    let names = |list: &str| -> Vec<&str> {
        shown[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
    };
    assert_eq!((names("buckets"), names("log_groups")), (vec!["first", "second"], vec!["/made", "/there"]));
    assert_eq!(shown["put_log_events"]["events"], 7);
    assert_eq!(shown["refused"][0]["code"], "ThrottlingException");
    assert_eq!(shown["refused"][0]["by_fault"], true);

    let sent = Command::new("kill").args(["-TERM", &dev_aws.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = dev_aws.wait_with_output().unwrap();
    assert!(ended.status.success(), "after SIGTERM it ended with {}", ended.status);
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(said.contains(&endpoint) && said.contains("for development only"), "{said}");
}
