// Reads a JSON text from standard input and writes what was found, one line a value: for the test that holds it against another reader.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wharf_json.h"

static void print_bytes(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)text[i]);
}

static void print(const wharf_json_t *value, int depth) {
  for (; value; value = value->next) {
    printf("%d ", depth);
    if (value->key) print_bytes(value->key, strlen(value->key));
    printf(" %d ", value->kind);
    if (value->kind == WHARF_JSON_STRING) print_bytes(value->text, value->text_length);
    if (value->kind == WHARF_JSON_NUMBER) {
      uint64_t bits;
      memcpy(&bits, &value->number, sizeof bits);
      printf("%016llx", (unsigned long long)bits);
    }
    if (value->kind == WHARF_JSON_BOOL) printf("%d", (int)value->number);
    printf("\n");
    print(value->first, depth + 1);
  }
}

int main(void) {
  // The reader is given no byte more than the text has, for a sanitizer to see.
  static char buffer[1 << 20];
  size_t length = fread(buffer, 1, sizeof buffer, stdin);
  char *text = malloc(length ? length : 1);
  memcpy(text, buffer, length);
  wharf_json_t *value = wharf_json_parse(text, length);
  free(text);
  if (!value) return 1;
  print(value, 0);
  wharf_json_free(value);
  return 0;
}
