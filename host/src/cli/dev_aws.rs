//! `wharf dev-aws`: S3 and CloudWatch Logs on this machine, to try a configuration against before it meets AWS.

use std::net::SocketAddr;

use clap::Args as ClapArgs;
use wharf_local_aws::logs::Signatures;
use wharf_local_aws::{ACCESS_KEY, Aws, Options, Rule, SECRET_KEY, logs};

use super::{Ended, ended, print, say};

const EXAMPLES: &str = "\
Examples:
  wharf dev-aws                                        one bucket, my-bucket; users make groups
  wharf dev-aws --bucket archive --log-group /myapp
  wharf dev-aws --fault PutLogEvents=ThrottlingException,percent=10
  wharf dev-aws --fault PutObject=SlowDown,next=20 --fault CreateLogStream=stall:2s
  wharf dev-aws --fault PutLogEvents=vanish-group,nth=50,on=/myapp:

A fault is OPERATION=FAULT[,WHEN][,on=TEXT].
  OPERATION  a name of the API (PutObject, UploadPart, PutLogEvents, …), or *
  FAULT      an error code (SlowDown, ThrottlingException, ExpiredTokenException, …);
             early:CODE   the same before the request is read, and the connection closes
             lose-reply   carried out, then the connection closes; partial-reply   inside the answer
             reset        the connection is reset with nothing done
             stall:TIME   nothing happens for so long; stall-reply:TIME   the answer comes late
             inside-200:CODE   an error under status 200, as CompleteMultipartUpload may give
             vanish-stream, vanish-group   somebody deletes what the request names
             too-old:N, expired:N, too-new:N   PutLogEvents rejects so many events
             bad-entity:TYPE   PutLogEvents rejects the entity
  WHEN       nth=N, next=N, every=N, percent=N, for=TIME; always otherwise
  TEXT       a part of the object's key, or of GROUP:STREAM

It refuses what AWS refuses: signatures, checksums, names, sizes, order and age of events, rates.
See docs/dev-aws.md.
For development only: all is kept in memory, and gone at the end. SIGTERM or SIGINT ends it.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Where to listen, both services on one port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4566")]
    listen: SocketAddr,
    /// A bucket that is there from the beginning; may be repeated
    #[arg(long = "bucket", value_name = "NAME", default_value = "my-bucket", value_parser = bucket_name)]
    buckets: Vec<String>,
    /// A log group that is there from the beginning; may be repeated
    #[arg(long = "log-group", value_name = "NAME")]
    log_groups: Vec<String>,
    /// The region that signatures must name
    #[arg(long, value_name = "NAME", default_value = "us-east-1")]
    region: String,
    /// Something that goes wrong, see below; may be repeated
    #[arg(long = "fault", value_name = "SPEC")]
    faults: Vec<Rule>,
    /// Let any access key in, whatever its secret, instead of test/testsecret alone
    #[arg(long)]
    any_credentials: bool,
    /// Listen where other machines can reach it
    #[arg(long)]
    allow_remote: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Ended::Failed(format!(
            "dev-aws would listen on {}, where other machines can reach it; its credentials are no secret. \
             Listen on 127.0.0.1, or say --allow-remote",
            args.listen
        )));
    }
    let aws = start(args).map_err(|error| Ended::Failed(format!("{error:#}")))?;
    for rule in &args.faults {
        aws.s3().faults().add(rule.clone());
        aws.logs().faults().add(rule.clone());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before anybody is told that it runs: they may end it at once.
        let ended = ended()?;
        print(&greeting(args, &aws.endpoint()))?;
        ended.await;
        Ok::<(), Ended>(())
    })?;
    let totals = aws.logs().totals();
    say(&format!(
        "wharf dev-aws: ended; {} objects and {} log events in {} calls are gone with it, {} requests to CloudWatch Logs were refused",
        aws.s3().objects().len(),
        totals.events,
        totals.calls,
        aws.logs().refused().len(),
    ));
    aws.stop();
    Ok(())
}

/// Both services as these arguments want them. The error is the crate's own, shown as it is.
fn start(args: &Args) -> Result<Aws, impl std::fmt::Display> {
    let s3 = Options {
        address: args.listen.ip(),
        port: args.listen.port(),
        buckets: args.buckets.clone(),
        region: Some(args.region.clone()),
        // As S3 does, where a test would rather be told.
        refuse_overwrites: false,
        any_credentials: args.any_credentials,
        threads: 2,
        ..Options::default()
    };
    let logs = logs::Options {
        groups: args.log_groups.clone(),
        region: args.region.clone(),
        signatures: if args.any_credentials { Signatures::AnyKey } else { Signatures::Checked },
        ..logs::Options::default()
    };
    Aws::start(s3, logs)
}

/// What a person has to know, ready to be copied.
fn greeting(args: &Args, endpoint: &str) -> String {
    // An address that means all of them is none to connect to.
    let endpoint = endpoint.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let region = &args.region;
    let bucket = args.buckets.first().map_or("my-bucket", String::as_str);
    let group = args.log_groups.first().map_or("/myapp", String::as_str);
    let (key, secret) = (ACCESS_KEY, SECRET_KEY);
    let who = if args.any_credentials {
        "any access key is let in, whatever its secret"
    } else {
        "no other is let in without --any-credentials"
    };
    let faults = match args.faults.len() {
        0 => String::new(),
        1 => "One kind of fault is in force.\n\n".to_owned(),
        count => format!("{count} kinds of faults are in force.\n\n"),
    };
    format!(
        "S3 and CloudWatch Logs on {endpoint}, for development only: all is kept in memory, and gone when this ends.\n\n\
         {faults}In wharf.yaml:\n\n  \
           aws: {{ region: {region}, endpoint: \"{endpoint}\" }}\n  \
           outputs:\n    \
             archive: {{ plugin: s3, match: \"*\", config: {{ bucket: {bucket}, key_format: /logs/segment_$INDEX }} }}\n    \
             live: {{ plugin: cloudwatch_logs, match: \"*\", config: {{ log_group_name: {group}, log_stream_name: app, auto_create_group: true }} }}\n\n\
         Credentials for Wharf and for whoever reads back ({who}):\n\n  \
           export AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret} AWS_DEFAULT_REGION={region}\n\n\
         Reading back:\n\n  \
           aws --endpoint-url {endpoint} s3 ls --recursive s3://{bucket}\n  \
           aws --endpoint-url {endpoint} logs filter-log-events --log-group-name {group}\n  \
           python3 -c 'import boto3; print(boto3.client(\"s3\", endpoint_url=\"{endpoint}\").list_objects_v2(Bucket=\"{bucket}\"))'\n  \
           curl {endpoint}/_wharf      what arrived, and what was refused and why; a page in a browser\n\n"
    )
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>
fn bucket_name(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !(3..=63).contains(&text.len())
        || !text.chars().all(known)
        || !ends(text.chars().next())
        || !ends(text.chars().last())
    {
        return Err("a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens, and begins and ends \
                    with a letter or digit"
            .to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::Config;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        Line::try_parse_from(line.split(' ')).unwrap().args
    }

    /// What is to be copied is a configuration that Wharf takes.
    #[test]
    fn the_configuration_that_it_prints_is_a_valid_one() {
        let text =
            greeting(&args("x --bucket archive --log-group /a --listen 0.0.0.0:1 --allow-remote"), "http://0.0.0.0:1");
        let yaml: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("  aws:"))
            .take_while(|line| !line.is_empty())
            .map(|line| line.strip_prefix("  ").unwrap())
            .collect();
        let yaml = format!("sources: {{ in: {{ type: stdin, tag: a }} }}\n{}\n", yaml.join("\n"));
        let config = Config::parse(&yaml, "printed.yaml".as_ref(), &|_| None).unwrap();
        assert_eq!(config.outputs.len(), 2);
        assert!(yaml.contains("endpoint: \"http://127.0.0.1:1\""), "{yaml}");
    }

    #[test]
    fn other_machines_reach_it_only_where_that_was_said() {
        let Err(Ended::Failed(message)) = run(&args("x --listen 0.0.0.0:0")) else { panic!("it listens to everybody") };
        assert!(message.contains("--allow-remote"), "{message}");
    }

    #[test]
    fn wrong_names_and_faults_are_refused_with_what_is_right() {
        for (line, said) in
            [("x --bucket B", "3 to 63 lower-case letters"), ("x --fault PutLogEvents=Slow", "`Slow` is not one of")]
        {
            let error = Line::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let Err(Ended::Failed(message)) = run(&args("x --listen 127.0.0.1:0 --log-group aws/x")) else {
            panic!("a name was taken that AWS keeps for itself")
        };
        assert!(message.contains("reserved for AWS"), "{message}");
    }
}
