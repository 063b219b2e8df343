// A reader of JSON (RFC 8259) that makes a tree.
#include "wharf_json.h"

#include <stdlib.h>
#include <string.h>

// Memory that cannot be had ends the worker; its batch is tried again in a fresh one.
static void *allocate(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) abort();
  return memory;
}

#define DEEPEST 64

typedef struct {
  const char *at;
  const char *end;
} reader_t;

static void skip_blanks(reader_t *r) {
  while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) r->at++;
}

static bool take(reader_t *r, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Four digits behind `\u`.
static bool take_unit(reader_t *r, uint32_t *unit) {
  *unit = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    int digit = r->at < r->end ? hex_digit(*r->at) : -1;
    if (digit < 0) return false;
    *unit = *unit * 16 + (uint32_t)digit;
  }
  return true;
}

static size_t put_utf8(char *to, uint32_t c) {
  if (c < 0x80) return to[0] = (char)c, 1;
  if (c < 0x800) return to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 0x3F)), 2;
  if (c < 0x10000) {
    to[0] = (char)(0xE0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 0x3F)), to[2] = (char)(0x80 | (c & 0x3F));
    return 3;
  }
  to[0] = (char)(0xF0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 0x3F));
  to[2] = (char)(0x80 | (c >> 6 & 0x3F)), to[3] = (char)(0x80 | (c & 0x3F));
  return 4;
}

// What follows a backslash, as UTF-8. A surrogate without its other half becomes U+FFFD.
static bool take_escape(reader_t *r, char *to, size_t *length) {
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (r->at >= r->end) return false;
  char c = *r->at++;
  const char *simple = c ? strchr(letters, c) : NULL;
  if (simple) return to[(*length)++] = meant[simple - letters], true;
  uint32_t unit;
  if (c != 'u' || !take_unit(r, &unit)) return false;
  if (unit >= 0xD800 && unit < 0xDC00) {
    reader_t before = *r;
    uint32_t low;
    if (take(r, "\\u") && take_unit(r, &low) && low >= 0xDC00 && low < 0xE000) {
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else {
      *r = before;
      unit = 0xFFFD;
    }
  } else if (unit >= 0xDC00 && unit < 0xE000) {
    unit = 0xFFFD;
  }
  *length += put_utf8(to + *length, unit);
  return true;
}

// A string, at its first quote. NULL where it is none. No escape is longer than what it stands for.
static char *take_string(reader_t *r, size_t *length) {
  if (!take(r, "\"")) return NULL;
  const char *close = r->at;
  while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
  if (close >= r->end) return NULL;
  char *text = allocate((size_t)(close - r->at) + 1);
  *length = 0;
  while (*r->at != '"') {
    char c = *r->at++;
    bool good = c == '\\' ? take_escape(r, text, length) : (unsigned char)c >= 0x20;
    if (!good) return free(text), NULL;
    if (c != '\\') text[(*length)++] = c;
  }
  r->at++;
  return text;
}

static size_t take_digits(reader_t *r) {
  const char *first = r->at;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
  return (size_t)(r->at - first);
}

static bool take_number(reader_t *r, double *number) {
  const char *first = r->at;
  take(r, "-");
  bool zero = r->at < r->end && *r->at == '0';
  size_t digits = take_digits(r);
  if (digits == 0 || (zero && digits > 1)) return false;
  if (take(r, ".") && take_digits(r) == 0) return false;
  if (take(r, "e") || take(r, "E")) {
    if (!take(r, "+")) take(r, "-");
    if (take_digits(r) == 0) return false;
  }
  size_t length = (size_t)(r->at - first);
  char *text = allocate(length + 1);
  memcpy(text, first, length);
  *number = strtod(text, NULL);
  free(text);
  return true;
}

static bool take_value(reader_t *r, wharf_json_t *value, int depth);

// Items up to the closing bracket.
static bool take_items(reader_t *r, wharf_json_t *parent, char close, int depth) {
  char closing[2] = {close, 0};
  wharf_json_t **last = &parent->first;
  skip_blanks(r);
  if (take(r, closing)) return true;
  do {
    *last = allocate(sizeof **last);
    skip_blanks(r);
    if (close == '}') {
      size_t length;
      (*last)->key = take_string(r, &length);
      skip_blanks(r);
      // A key with a zero inside could not be asked for.
      if (!(*last)->key || strlen((*last)->key) != length || !take(r, ":")) return false;
    }
    if (!take_value(r, *last, depth + 1)) return false;
    last = &(*last)->next;
    skip_blanks(r);
  } while (take(r, ","));
  return take(r, closing);
}

static bool take_value(reader_t *r, wharf_json_t *value, int depth) {
  if (depth > DEEPEST) return false;
  skip_blanks(r);
  if (take(r, "null")) return value->kind = WHARF_JSON_NULL, true;
  if (take(r, "true")) return value->kind = WHARF_JSON_BOOL, value->number = 1, true;
  if (take(r, "false")) return value->kind = WHARF_JSON_BOOL, true;
  if (take(r, "{")) return value->kind = WHARF_JSON_OBJECT, take_items(r, value, '}', depth);
  if (take(r, "[")) return value->kind = WHARF_JSON_ARRAY, take_items(r, value, ']', depth);
  if (r->at < r->end && *r->at == '"') {
    value->kind = WHARF_JSON_STRING;
    value->text = take_string(r, &value->text_length);
    return value->text != NULL;
  }
  value->kind = WHARF_JSON_NUMBER;
  return take_number(r, &value->number);
}

wharf_json_t *wharf_json_parse(const void *text, size_t length) {
  reader_t r = {text, (const char *)text + length};
  wharf_json_t *value = allocate(sizeof *value);
  bool good = take_value(&r, value, 0);
  skip_blanks(&r);
  if (good && r.at == r.end) return value;
  wharf_json_free(value);
  return NULL;
}

void wharf_json_free(wharf_json_t *value) {
  while (value) {
    wharf_json_t *next = value->next;
    wharf_json_free(value->first);
    free(value->key);
    free(value->text);
    free(value);
    value = next;
  }
}

const wharf_json_t *wharf_json_get(const wharf_json_t *object, const char *key) {
  if (!object || object->kind != WHARF_JSON_OBJECT) return NULL;
  for (const wharf_json_t *item = object->first; item; item = item->next) {
    if (strcmp(item->key, key) == 0) return item;
  }
  return NULL;
}

const char *wharf_json_text(const wharf_json_t *value, const char *otherwise) {
  return value && value->kind == WHARF_JSON_STRING ? value->text : otherwise;
}

double wharf_json_number(const wharf_json_t *value, double otherwise) {
  return value && value->kind == WHARF_JSON_NUMBER ? value->number : otherwise;
}

bool wharf_json_u32(const wharf_json_t *value, uint32_t *number) {
  double found = wharf_json_number(value, -1);
  if (!(found >= 0 && found <= UINT32_MAX) || found != (double)(uint32_t)found) return false;
  *number = (uint32_t)found;
  return true;
}
