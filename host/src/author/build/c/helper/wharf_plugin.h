// Write an output plugin for Wharf in C. `wharf plugin build` puts this file into bindings/ at each build: change it nowhere.
//
// A plugin is one value, `wharf_plugin`: what it is called, which options it takes, and what it does with a batch. Everything of the WIT
// package is in wharf.h (made by wit-bindgen), with its documents; what is here makes the usual things short.
//
// Memory: what a function here is given it copies or frees itself, where it says so. What it returns is the caller's, to be freed as it
// says. Texts are UTF-8.
#ifndef WHARF_PLUGIN_H
#define WHARF_PLUGIN_H

#include <stdlib.h>

#include "wharf.h"
#include "wharf_json.h"

// Shorter names.
typedef exports_wharf_output_output_plan_t wharf_plan_t;
typedef exports_wharf_output_output_report_t wharf_report_t;
typedef exports_wharf_output_output_failure_t wharf_failure_t;
typedef exports_wharf_output_output_list_config_fault_t wharf_faults_t;
typedef exports_wharf_output_output_borrow_batch_t wharf_batch_t;
typedef wharf_output_records_own_body_t wharf_body_t;
typedef wharf_output_records_host_error_t wharf_host_error_t;
typedef wharf_output_http_response_t wharf_response_t;

#define WHARF_THROTTLED WHARF_OUTPUT_TYPES_FAILURE_KIND_THROTTLED
#define WHARF_TRANSIENT WHARF_OUTPUT_TYPES_FAILURE_KIND_TRANSIENT
#define WHARF_AUTH WHARF_OUTPUT_TYPES_FAILURE_KIND_AUTH
#define WHARF_MISCONFIGURED WHARF_OUTPUT_TYPES_FAILURE_KIND_MISCONFIGURED
#define WHARF_REJECTED WHARF_OUTPUT_TYPES_FAILURE_KIND_REJECTED

// ---- The plugin

typedef struct {
  // As in `plugin: <name>`: lower-case letters, digits, `_` and `-`.
  const char *name;
  // Semantic version.
  const char *version;
  // JSON Schema of the options: each a property with a description, `additionalProperties` false.
  const char *config_schema;
  // Reads the options and says what the host has to know. Called once, before anything else; `config` has passed the schema, and lives
  // as long as the plugin. False where something is wrong, with wharf_fault for each.
  bool (*configure)(const wharf_json_t *config, wharf_plan_t *plan, wharf_faults_t *faults);
  // Delivers a batch. May be called again with the same one. False where it was not delivered, with the failure written.
  bool (*deliver)(wharf_batch_t batch, wharf_report_t *report, wharf_failure_t *failure);
  // The host gives this batch up. May be NULL.
  void (*abandon)(wharf_batch_t batch);
  // Before the worker is dropped in peace. May be NULL.
  void (*close)(void);
} wharf_plugin_t;

// Defined by you.
extern const wharf_plugin_t wharf_plugin;

// ---- In `configure`

// Notes a fault. `path` is a JSON Pointer into the options: "/url". Gives false.
bool wharf_fault(wharf_faults_t *faults, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The plugin will send requests to where this URL leads.
void wharf_plan_http(wharf_plan_t *plan, const char *url);
// Its requests will name this credential.
void wharf_plan_credential(wharf_plan_t *plan, const char *name);
// Its own defaults for batches, where the operator says nothing.
void wharf_plan_limits(wharf_plan_t *plan, uint64_t max_bytes, uint32_t max_records, uint64_t max_age_ms);

// ---- In `deliver`

// The batch's id, 32 hexadecimal digits. Free it with free.
char *wharf_batch_id(wharf_batch_t batch);

// Writes all records in the host: "json_array", "json_lines" or "text", compressed with "none", "gzip" or "zstd". Free the body with
// wharf_body_free.
bool wharf_encode(wharf_batch_t batch, const char *format, const char *compression, wharf_body_t *body, wharf_failure_t *failure);
// The same for some of the records: their numbers, ascending, each once. Frees nothing.
bool wharf_encode_only(wharf_batch_t batch, const wharf_list_u32_t *records, const char *format, const char *compression,
                       wharf_body_t *body, wharf_failure_t *failure);
void wharf_body_free(wharf_body_t body);

typedef struct {
  const char *name;
  const char *value;
} wharf_header_t;

// Sends a body and waits for the answer, whatever its status is. `credential` may be NULL; `headers` end with a name that is NULL. False
// where no answer came. Free the response with wharf_response_free.
bool wharf_http_post(const char *url, const char *credential, const wharf_header_t *headers, wharf_body_t body,
                     wharf_response_t *response, wharf_failure_t *failure);
void wharf_response_free(wharf_response_t *response);

// The destination will never take this record: it becomes a dead letter with the reason. Records in any order, each once.
void wharf_reject(wharf_report_t *report, uint32_t record, const char *reason);

// Writes a failure. Gives false, so that `return wharf_fail(…);` is the way out.
bool wharf_fail(wharf_failure_t *failure, wharf_output_types_failure_kind_t kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same for an answer that is no success: its status decides which kind of failure it is, and its Retry-After goes along.
bool wharf_fail_status(wharf_failure_t *failure, const char *service, const wharf_response_t *response);
// The same for what the host refused. Frees the error.
bool wharf_fail_host(wharf_failure_t *failure, const char *doing, wharf_host_error_t *error);

// A line for the host's log. Not formatted where nobody would read it.
void wharf_log(wharf_output_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
