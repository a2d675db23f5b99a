//! `linerate doctor` as its user runs it: on this machine it only looks, and it measures over emulated paths.

use std::io::BufRead;
use std::process::{Child, Command, Stdio};

use host::sysctl;
use lab::session::{DataFrom, Session, Setup};
use lab::world::SERVER;
use path::RateModel;
use scenario::{AdHoc, Scenario};
use serde_json::Value;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const QUESTIONS: [&str; 7] =
    ["no-improvement", "back-to-cubic", "key-not-found", "one-core", "receiver-buffers", "send-buffer", "elsewhere"];

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers over a path, by question.
fn over(rate: &str, rtt: &str, loss: &str, sysctls: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut parts = AdHoc::new(RateModel::Constant(rate.parse().unwrap()), rtt.parse().unwrap());
    parts.loss = loss.parse().unwrap();
    let scenario = Scenario::ad_hoc(parts).unwrap();
    let cell = scenario.cells().unwrap().remove(0);
    let sysctls: Vec<(String, String)> = sysctls.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let session = Session::start(Setup {
        forward: &cell.forward,
        back: &cell.back,
        data_from: DataFrom::Client,
        seed: 1,
        mtu: scenario.path.mtu,
        sysctls: &sysctls,
        flows: 0,
        probe: false,
        log_packets: false,
        capture: None,
    })
    .unwrap();
    // Not by the lab's own way, a route that chooses; and not CUBIC, which a kernel may keep from namespaces.
    session.world.client.run(|| sysctl::write(CONTROL, "reno").unwrap()).unwrap();
    let mut serve = session.world.server.command(LINERATE);
    let mut server =
        Server(serve.args(["serve", "--json", "--bind", &SERVER.to_string()]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    std::io::BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut doctor = session.world.client.command(LINERATE);
    let output = doctor.args(["doctor", &SERVER.to_string(), "--json", "--duration", "2s"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), document)
}

fn answer<'a>(document: &'a Value, id: &str) -> &'a Value {
    document["answers"].as_array().unwrap().iter().find(|answer| answer["id"] == id).unwrap()
}

#[test]
fn without_a_host_every_question_has_an_answer_and_what_needs_a_run_says_so() {
    let output = Command::new(LINERATE).args(["doctor", "--json"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&str> =
        document["answers"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, QUESTIONS);
    assert_eq!(document["schema"], "linerate.doctor/1");
    assert_eq!(answer(&document, "one-core")["verdict"], "not-known");
    assert!(answer(&document, "one-core")["advice"][0].as_str().unwrap().contains("linerate doctor HOST"));
    let wrong = document["answers"].as_array().unwrap().iter().any(|one| one["wrong"] == true);
    assert_eq!(output.status.code(), Some(i32::from(wrong)));
}

#[test]
fn a_path_that_is_filled_is_said_to_be_the_limit() {
    testkit::require_root_or_skip!();
    let (_, document) = over("20mbit", "20ms", "0%", &[]);
    let elsewhere = answer(&document, "elsewhere");
    assert_eq!((&elsewhere["verdict"], &elsewhere["wrong"]), (&"yes".into(), &false.into()), "{document:#}");
    assert_eq!(answer(&document, "receiver-buffers")["verdict"], "no", "{document:#}");
}

#[test]
fn a_receive_buffer_that_holds_the_sender_is_found_and_the_exit_code_says_so() {
    testkit::require_root_or_skip!();
    let small = [("net.ipv4.tcp_rmem", "4096 16384 65536")];
    let (code, document) = over("100mbit", "60ms", "0%", &small);
    let buffers = answer(&document, "receiver-buffers");
    assert_eq!((&buffers["verdict"], code), (&"yes".into(), Some(1)), "{document:#}");
    assert!(buffers["advice"][0].as_str().unwrap().contains("tcp_rmem"), "{buffers:#}");
}

#[test]
fn a_host_that_does_not_answer_is_a_failure_with_a_way_on() {
    testkit::require_root_or_skip!();
    let namespace = host::netns::NetNs::create().unwrap();
    let output = namespace.command(LINERATE).args(["doctor", "127.0.0.1:5999"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let output = Command::new(LINERATE).args(["doctor", "far:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("HOST:PORT"));
}
