// Delivers batches of records to an HTTP API, each as one JSON array.

#include <string.h>

#include "wharf_plugin.h"

// Options under `config`. Their descriptions are what operators read.
static const char schema[] =
    "{ \"type\": \"object\", \"additionalProperties\": false, \"required\": [\"url\"], \"properties\": {"
    "  \"url\": { \"type\": \"string\","
    "    \"description\": \"Where events are sent, such as https://api.example.com/v1/events.\" },"
    "  \"credential\": { \"type\": \"string\","
    "    \"description\": \"The credential to send them with, by its name under `credentials`.\" } } }";

static const char *url;
static const char *credential;

static bool configure(const wharf_json_t *config, wharf_plan_t *plan, wharf_faults_t *faults) {
  url = wharf_json_text(wharf_json_get(config, "url"), "");
  credential = wharf_json_text(wharf_json_get(config, "credential"), NULL);
  if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0) {
    return wharf_fault(faults, "/url", "write an absolute URL, as in https://api.example.com/v1/events");
  }
  wharf_plan_http(plan, url);
  if (credential) wharf_plan_credential(plan, credential);
  wharf_plan_limits(plan, 1 << 20, 1000, 5000);
  return true;
}

// What the API answers: {"rejected": [{"index": 3, "reason": "…"}]}, the events that it does not take.
static bool report_rejected(const wharf_response_t *answer, wharf_report_t *report, wharf_failure_t *failure) {
  wharf_json_t *said = wharf_json_parse(answer->body.ptr, answer->body.len);
  if (!said) return wharf_fail(failure, WHARF_TRANSIENT, "the API's answer is no JSON");
  const wharf_json_t *rejected = wharf_json_get(said, "rejected");
  for (const wharf_json_t *event = rejected ? rejected->first : NULL; event; event = event->next) {
    uint32_t index;
    if (wharf_json_u32(wharf_json_get(event, "index"), &index)) {
      wharf_reject(report, index, wharf_json_text(wharf_json_get(event, "reason"), "the API gives no reason"));
    }
  }
  wharf_json_free(said);
  return true;
}

static bool send(wharf_batch_t batch, wharf_body_t body, wharf_report_t *report, wharf_failure_t *failure) {
  // The same in every attempt: the API can tell what it has already.
  char *id = wharf_batch_id(batch);
  wharf_header_t headers[] = {{"content-type", "application/json"}, {"idempotency-key", id}, {NULL, NULL}};
  wharf_response_t answer;
  bool answered = wharf_http_post(url, credential, headers, body, &answer, failure);
  free(id);
  if (!answered) return false;
  bool taken = answer.status >= 200 && answer.status < 300;
  bool done = taken ? report_rejected(&answer, report, failure) : wharf_fail_status(failure, url, &answer);
  wharf_response_free(&answer);
  return done;
}

static bool deliver(wharf_batch_t batch, wharf_report_t *report, wharf_failure_t *failure) {
  // Written by the host, and kept there: only the answer comes into the plugin's memory.
  wharf_body_t body;
  if (!wharf_encode(batch, "json_array", "none", &body, failure)) return false;
  bool done = send(batch, body, report, failure);
  wharf_body_free(body);
  return done;
}

const wharf_plugin_t wharf_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .config_schema = schema,
    .configure = configure,
    .deliver = deliver,
};
