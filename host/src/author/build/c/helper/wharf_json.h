// JSON: an output's configuration, and what services answer. Made by `wharf plugin build`: change it nowhere.
#ifndef WHARF_JSON_H
#define WHARF_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  WHARF_JSON_NULL,
  WHARF_JSON_BOOL,
  WHARF_JSON_NUMBER,
  WHARF_JSON_STRING,
  WHARF_JSON_ARRAY,
  WHARF_JSON_OBJECT,
} wharf_json_kind_t;

typedef struct wharf_json {
  wharf_json_kind_t kind;
  // In an object: this value's key.
  char *key;
  // Of a string: its bytes, with a zero behind them (and perhaps zeros inside).
  char *text;
  size_t text_length;
  // Of a number; of a bool, 0 or 1.
  double number;
  // Of an array or object: its first item. `next` of each leads to the next one.
  struct wharf_json *first;
  struct wharf_json *next;
} wharf_json_t;

// Reads a JSON text (RFC 8259, at most 64 levels). NULL where it is none. Free it with wharf_json_free.
wharf_json_t *wharf_json_parse(const void *text, size_t length);
void wharf_json_free(wharf_json_t *value);
// The value of a key; NULL where there is none, or no object.
const wharf_json_t *wharf_json_get(const wharf_json_t *object, const char *key);
// A string's text; `otherwise` where it is none. It lives as long as the value.
const char *wharf_json_text(const wharf_json_t *value, const char *otherwise);
// A number; `otherwise` where it is none.
double wharf_json_number(const wharf_json_t *value, double otherwise);
// Whether it is a whole number from 0 to 4294967295, and which.
bool wharf_json_u32(const wharf_json_t *value, uint32_t *number);

#endif
