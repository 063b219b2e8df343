// The glue between `wharf_plugin` and the component's exports, and what wharf_plugin.h declares.
#include "wharf_plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Memory that cannot be had ends the worker; its batch is tried again in a fresh one.
static void *allocate(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) abort();
  return memory;
}

static void *reallocate(void *memory, size_t size) {
  memory = realloc(memory, size ? size : 1);
  if (!memory) abort();
  return memory;
}

// One more item at the end of a list.
static void *grown(void *items, size_t length, size_t size) {
  return reallocate(items, (length + 1) * size);
}

// How many bytes the character at `text` has; 0 where it is no UTF-8 (RFC 3629, section 4).
static size_t character(const uint8_t *text, size_t length) {
  uint8_t first = text[0];
  size_t size = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
  if (size == 0 || size > length) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  bool overlong = (first == 0xE0 && text[1] < 0xA0) || (first == 0xF0 && text[1] < 0x90);
  bool beyond = (first == 0xED && text[1] > 0x9F) || (first == 0xF4 && text[1] > 0x8F);
  return overlong || beyond ? 0 : size;
}

// A text that is no UTF-8 would end the worker: what a service answers may be anything.
static wharf_string_t only_utf8(wharf_string_t text) {
  for (size_t at = 0; at < text.len;) {
    size_t size = character(text.ptr + at, text.len - at);
    if (size == 0) text.ptr[at] = '?';
    at += size ? size : 1;
  }
  return text;
}

static wharf_string_t copied(const char *text) {
  wharf_string_t copy;
  wharf_string_dup(&copy, text);
  return only_utf8(copy);
}

static wharf_string_t formatted(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  if (length < 0) length = 0;
  char *text = allocate((size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return only_utf8((wharf_string_t){(uint8_t *)text, (size_t)length});
}

// ---- The component's exports

void exports_wharf_output_output_describe(exports_wharf_output_output_descriptor_t *descriptor) {
  descriptor->name = copied(wharf_plugin.name);
  descriptor->version = copied(wharf_plugin.version);
  descriptor->config_schema = copied(wharf_plugin.config_schema);
}

bool exports_wharf_output_output_configure(wharf_string_t *config, exports_wharf_output_output_context_t *surroundings,
                                           wharf_plan_t *plan, wharf_faults_t *faults) {
  memset(plan, 0, sizeof *plan);
  *faults = (wharf_faults_t){0};
  wharf_json_t *options = wharf_json_parse(config->ptr, config->len);
  wharf_string_free(config);
  exports_wharf_output_output_context_free(surroundings);
  if (!options) return wharf_fault(faults, "", "the configuration is no JSON");
  // The options live as long as the worker: their texts may be kept.
  return wharf_plugin.configure(options, plan, faults);
}

bool exports_wharf_output_output_deliver(wharf_batch_t batch, wharf_report_t *report, wharf_failure_t *failure) {
  *report = (wharf_report_t){0};
  memset(failure, 0, sizeof *failure);
  bool delivered = wharf_plugin.deliver(batch, report, failure);
  if (!delivered) exports_wharf_output_output_report_free(report);
  wharf_output_records_batch_drop_borrow(batch);
  return delivered;
}

void exports_wharf_output_output_abandon(wharf_batch_t batch) {
  if (wharf_plugin.abandon) wharf_plugin.abandon(batch);
  wharf_output_records_batch_drop_borrow(batch);
}

void exports_wharf_output_output_close(void) {
  if (wharf_plugin.close) wharf_plugin.close();
}

// ---- Faults and the plan

bool wharf_fault(wharf_faults_t *faults, const char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  faults->ptr = grown(faults->ptr, faults->len, sizeof *faults->ptr);
  faults->ptr[faults->len++] =
      (exports_wharf_output_output_config_fault_t){copied(path), formatted(format, arguments)};
  va_end(arguments);
  return false;
}

static void append(wharf_list_string_t *list, wharf_string_t text) {
  list->ptr = grown(list->ptr, list->len, sizeof *list->ptr);
  list->ptr[list->len++] = text;
}

void wharf_plan_http(wharf_plan_t *plan, const char *url) {
  // Scheme, host and port; what is no URL stays as it is, for the host to say so.
  const char *host = strstr(url, "://");
  size_t length = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : strlen(url);
  wharf_string_t origin = copied(url);
  origin.len = length;
  append(&plan->http, origin);
}

void wharf_plan_credential(wharf_plan_t *plan, const char *name) { append(&plan->credentials, copied(name)); }

void wharf_plan_limits(wharf_plan_t *plan, uint64_t max_bytes, uint32_t max_records, uint64_t max_age_ms) {
  plan->max_bytes = (wharf_option_u64_t){true, max_bytes};
  plan->max_records = (wharf_option_u32_t){true, max_records};
  plan->max_age_ms = (wharf_option_u64_t){true, max_age_ms};
}

// ---- Batches and bodies

char *wharf_batch_id(wharf_batch_t batch) {
  wharf_string_t id;
  wharf_output_records_method_batch_id(batch, &id);
  char *text = allocate(id.len + 1);
  memcpy(text, id.ptr, id.len);
  wharf_string_free(&id);
  return text;
}

// A view of a text, for a call that only reads it.
static wharf_string_t viewed(const char *text) {
  return (wharf_string_t){(uint8_t *)text, strlen(text)};
}

static bool encode(wharf_batch_t batch, wharf_output_records_selection_t selection, const char *format,
                   const char *compression, wharf_body_t *body, wharf_failure_t *failure) {
  wharf_output_records_encoding_t encoding = {
      .format = viewed(format),
      .date_key = {true, viewed("date")},
      .date_format = viewed("iso8601"),
      .compression = viewed(compression),
  };
  wharf_host_error_t error;
  wharf_output_records_own_encoder_t encoder;
  if (!wharf_output_records_method_batch_encode(batch, &selection, &encoding, &encoder, &error)) {
    return wharf_fail_host(failure, "encoding the batch", &error);
  }
  wharf_output_records_borrow_encoder_t lent = wharf_output_records_borrow_encoder(encoder);
  wharf_output_records_option_own_body_t piece = {0};
  // The largest piece that there is: a batch that is larger should have had a smaller `max_bytes`.
  bool good = wharf_output_records_method_encoder_next(lent, 64u << 20, &piece, &error);
  bool whole = good && piece.is_some && wharf_output_records_method_encoder_finished(lent);
  wharf_output_records_encoder_drop_own(encoder);
  if (!good) return wharf_fail_host(failure, "encoding the batch", &error);
  if (whole) return *body = piece.val, true;
  if (!piece.is_some) return wharf_fail(failure, WHARF_TRANSIENT, "the host encoded the batch to nothing at all");
  wharf_body_free(piece.val);
  return wharf_fail(failure, WHARF_MISCONFIGURED, "the batch encodes to more than 64 MiB: lower its `max_bytes`");
}

bool wharf_encode(wharf_batch_t batch, const char *format, const char *compression, wharf_body_t *body,
                  wharf_failure_t *failure) {
  wharf_output_records_selection_t all = {.tag = WHARF_OUTPUT_RECORDS_SELECTION_ALL};
  return encode(batch, all, format, compression, body, failure);
}

bool wharf_encode_only(wharf_batch_t batch, const wharf_list_u32_t *records, const char *format, const char *compression,
                       wharf_body_t *body, wharf_failure_t *failure) {
  wharf_output_records_selection_t some = {.tag = WHARF_OUTPUT_RECORDS_SELECTION_INDEXES, .val.indexes = *records};
  return encode(batch, some, format, compression, body, failure);
}

void wharf_body_free(wharf_body_t body) { wharf_output_records_body_drop_own(body); }

// ---- HTTP

bool wharf_http_post(const char *url, const char *credential, const wharf_header_t *headers, wharf_body_t body,
                     wharf_response_t *response, wharf_failure_t *failure) {
  size_t count = 0;
  while (headers && headers[count].name) count++;
  wharf_tuple2_string_string_t *pairs = allocate(count * sizeof *pairs);
  for (size_t i = 0; i < count; i++) {
    pairs[i] = (wharf_tuple2_string_string_t){viewed(headers[i].name), viewed(headers[i].value)};
  }
  wharf_output_http_request_t request = {
      .method = viewed("POST"),
      .url = viewed(url),
      .headers = {pairs, count},
      .credential = {credential != NULL, viewed(credential ? credential : "")},
  };
  wharf_output_records_borrow_body_t content = wharf_output_records_borrow_body(body);
  wharf_output_http_error_t error;
  bool answered = wharf_output_http_send(&request, &content, response, &error);
  free(pairs);
  if (answered) return true;
  if (error.tag == WHARF_OUTPUT_HTTP_ERROR_HOST) return wharf_fail_host(failure, "sending a request", &error.val.host);
  bool refused = error.tag == WHARF_OUTPUT_HTTP_ERROR_CREDENTIALS;
  wharf_string_t said = refused ? error.val.credentials : error.val.connection;
  wharf_fail(failure, refused ? WHARF_AUTH : WHARF_TRANSIENT, "no answer from %s: %.*s", url, (int)said.len, said.ptr);
  wharf_output_http_error_free(&error);
  return false;
}

void wharf_response_free(wharf_response_t *response) { wharf_output_http_response_free(response); }

// ---- Reports, failures, the log

void wharf_reject(wharf_report_t *report, uint32_t record, const char *reason) {
  size_t length = strlen(reason), place = 0;
  while (place < report->rejected.len) {
    wharf_string_t known = report->rejected.ptr[place].reason;
    if (known.len == length && memcmp(known.ptr, reason, length) == 0) break;
    place++;
  }
  if (place == report->rejected.len) {
    report->rejected.ptr = grown(report->rejected.ptr, place, sizeof *report->rejected.ptr);
    report->rejected.ptr[report->rejected.len++] =
        (exports_wharf_output_output_rejection_t){.reason = copied(reason)};
  }
  wharf_list_u32_t *records = &report->rejected.ptr[place].records;
  records->ptr = grown(records->ptr, records->len, sizeof *records->ptr);
  // The host wants them ascending.
  size_t at = records->len++;
  for (; at > 0 && records->ptr[at - 1] > record; at--) records->ptr[at] = records->ptr[at - 1];
  records->ptr[at] = record;
}

bool wharf_fail(wharf_failure_t *failure, wharf_output_types_failure_kind_t kind, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  *failure = (wharf_failure_t){.kind = kind, .message = formatted(format, arguments)};
  va_end(arguments);
  return false;
}

// As the SDK for Rust sorts them: see the table of its module `http`.
static wharf_output_types_failure_kind_t kind_of(uint16_t status) {
  switch (status) {
    case 429: return WHARF_THROTTLED;
    case 401: case 403: case 407: case 511: return WHARF_AUTH;
    case 408: case 409: case 421: case 423: case 425: return WHARF_TRANSIENT;
    case 402: case 404: case 405: case 406: case 410: case 411: case 412: case 414: case 415: case 417: case 426: case 428:
    case 431: case 451: case 501: case 505: return WHARF_MISCONFIGURED;
    default: break;
  }
  if (status >= 300 && status < 400) return WHARF_MISCONFIGURED;
  return status >= 400 && status < 500 ? WHARF_REJECTED : WHARF_TRANSIENT;
}

// As much of an answer's body as a message shows.
#define SHOWN 300

bool wharf_fail_status(wharf_failure_t *failure, const char *service, const wharf_response_t *response) {
  int shown = response->body.len < SHOWN ? (int)response->body.len : SHOWN;
  // Not in the middle of a character.
  while (shown > 0 && shown < (int)response->body.len && (response->body.ptr[shown] & 0xC0) == 0x80) shown--;
  wharf_fail(failure, kind_of(response->status), "%s answered %u: %.*s", service, response->status, shown,
             (const char *)response->body.ptr);
  failure->retry_after_ms = response->retry_after_ms;
  return false;
}

bool wharf_fail_host(wharf_failure_t *failure, const char *doing, wharf_host_error_t *error) {
  bool lasting = error->tag == WHARF_OUTPUT_TYPES_HOST_ERROR_DENIED || error->tag == WHARF_OUTPUT_TYPES_HOST_ERROR_INVALID;
  // All cases carry one text.
  wharf_string_t said = error->val.denied;
  wharf_fail(failure, lasting ? WHARF_MISCONFIGURED : WHARF_TRANSIENT, "%s: %.*s", doing, (int)said.len, said.ptr);
  wharf_output_records_host_error_free(error);
  return false;
}

void wharf_log(wharf_output_log_level_t level, const char *format, ...) {
  if (level > wharf_output_log_max_level()) return;
  va_list arguments;
  va_start(arguments, format);
  wharf_string_t line = formatted(format, arguments);
  va_end(arguments);
  wharf_list_tuple2_string_string_t none = {0};
  wharf_output_log_write(level, &line, &none);
  wharf_string_free(&line);
}
