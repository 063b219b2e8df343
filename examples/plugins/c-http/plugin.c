// Delivers batches of records to an HTTP API, each as one JSON array.
//
// What it shows beside what `wharf plugin new --lang c` writes: records are looked at before they are sent (those that are too large
// for the API are rejected here), only some of a batch are encoded, and the body is compressed by the host.

#include <string.h>

#include "wharf_plugin.h"

// Options under `config`. Their descriptions are what operators read.
static const char schema[] =
    "{ \"type\": \"object\", \"additionalProperties\": false, \"required\": [\"url\"], \"properties\": {"
    "  \"url\": { \"type\": \"string\","
    "    \"description\": \"Where events are sent, such as https://api.example.com/v1/events.\" },"
    "  \"credential\": { \"type\": \"string\","
    "    \"description\": \"The credential to send them with, by its name under `credentials`.\" },"
    "  \"compression\": { \"enum\": [\"none\", \"gzip\", \"zstd\"], \"default\": \"none\","
    "    \"description\": \"How requests are compressed: none, gzip or zstd.\" },"
    "  \"max_event_bytes\": { \"type\": \"integer\", \"minimum\": 1, \"maximum\": 4294967295, \"default\": 262144,"
    "    \"description\": \"Bytes of the largest event that the API takes. Larger records become dead letters.\" } } }";

static const char *url;
static const char *credential;
static const char *compression;
static uint32_t max_event_bytes = 256 << 10;

static bool configure(const wharf_json_t *config, wharf_plan_t *plan, wharf_faults_t *faults) {
  url = wharf_json_text(wharf_json_get(config, "url"), "");
  credential = wharf_json_text(wharf_json_get(config, "credential"), NULL);
  compression = wharf_json_text(wharf_json_get(config, "compression"), "none");
  wharf_json_u32(wharf_json_get(config, "max_event_bytes"), &max_event_bytes);
  if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0) {
    return wharf_fault(faults, "/url", "write an absolute URL, as in https://api.example.com/v1/events");
  }
  wharf_plan_http(plan, url);
  if (credential) wharf_plan_credential(plan, credential);
  wharf_plan_limits(plan, 1 << 20, 1000, 5000);
  return true;
}

// The numbers of records that the API can take, ascending; the others are rejected. Free the list with wharf_list_u32_free.
static wharf_list_u32_t chosen(wharf_batch_t batch, wharf_report_t *report) {
  wharf_list_u32_t sizes;
  wharf_output_records_method_batch_sizes(batch, 0, wharf_output_records_method_batch_count(batch), &sizes);
  // Chosen numbers take the place of the sizes: there are never more of them.
  size_t count = 0;
  for (uint32_t record = 0; record < sizes.len; record++) {
    if (sizes.ptr[record] <= max_event_bytes) {
      sizes.ptr[count++] = record;
    } else {
      wharf_reject(report, record, "larger than max_event_bytes");
    }
  }
  sizes.len = count;
  return sizes;
}

// What the API answers: {"rejected": [{"index": 3, "reason": "…"}]}, the events that it does not take, by their places in the request.
static bool report_rejected(const wharf_response_t *answer, const wharf_list_u32_t *sent, wharf_report_t *report,
                            wharf_failure_t *failure) {
  wharf_json_t *said = wharf_json_parse(answer->body.ptr, answer->body.len);
  if (!said) return wharf_fail(failure, WHARF_TRANSIENT, "the API's answer is no JSON");
  const wharf_json_t *rejected = wharf_json_get(said, "rejected");
  bool good = true;
  for (const wharf_json_t *event = rejected ? rejected->first : NULL; good && event; event = event->next) {
    uint32_t index;
    if (wharf_json_u32(wharf_json_get(event, "index"), &index) && index < sent->len) {
      wharf_reject(report, sent->ptr[index], wharf_json_text(wharf_json_get(event, "reason"), "the API gives no reason"));
    } else {
      good = wharf_fail(failure, WHARF_TRANSIENT, "the API rejects an event that it was not sent");
    }
  }
  wharf_json_free(said);
  return good;
}

static bool send(wharf_batch_t batch, const wharf_list_u32_t *records, wharf_body_t body, wharf_report_t *report,
                 wharf_failure_t *failure) {
  // The same in every attempt: the API can tell what it has already.
  char *id = wharf_batch_id(batch);
  bool compressed = strcmp(compression, "none") != 0;
  wharf_header_t headers[] = {
      {"content-type", "application/json"},
      {"idempotency-key", id},
      {compressed ? "content-encoding" : NULL, compression},
      {NULL, NULL},
  };
  wharf_response_t answer;
  bool answered = wharf_http_post(url, credential, headers, body, &answer, failure);
  free(id);
  if (!answered) return false;
  bool taken = answer.status >= 200 && answer.status < 300;
  bool done = taken ? report_rejected(&answer, records, report, failure) : wharf_fail_status(failure, url, &answer);
  wharf_response_free(&answer);
  return done;
}

static bool deliver(wharf_batch_t batch, wharf_report_t *report, wharf_failure_t *failure) {
  wharf_list_u32_t records = chosen(batch, report);
  bool done = true;
  if (records.len > 0) {
    // Written by the host, and kept there: only the answer comes into the plugin's memory.
    wharf_body_t body;
    done = wharf_encode_only(batch, &records, "json_array", compression, &body, failure);
    if (done) {
      done = send(batch, &records, body, report, failure);
      wharf_body_free(body);
    }
  }
  wharf_list_u32_free(&records);
  return done;
}

const wharf_plugin_t wharf_plugin = {
    .name = "c-http",
    .version = "0.1.0",
    .config_schema = schema,
    .configure = configure,
    .deliver = deliver,
};
