package sqltext

import (
	"slices"
	"strings"
)

// writes reports whether the statement may write rows. A statement only reads if its first word says so and it calls no function
// that may write.
func (s *statement) writes(text string) bool {
	first := s.head[0]
	if s.reads(text) { // or it is (SELECT …) UNION …
		return s.calls
	}
	for _, known := range setting {
		if is(text, first, known) {
			return false
		}
	}
	return true
}

// reads reports whether the statement's first word says that it reads.
func (s *statement) reads(text string) bool {
	return s.head[0].kind == opening || slices.ContainsFunc(reading, func(known string) bool { return is(text, s.head[0], known) })
}

// isCounted reports whether the server's answer to the statement has the number of written rows.
func (s *statement) isCounted(text string) bool {
	return is(text, s.head[0], "insert") || is(text, s.head[0], "update") || is(text, s.head[0], "delete")
}

// reading are the first words of statements that write only if they call a function that does, or have a part that does.
var reading = []string{"select", "with", "values", "table", "explain"}

// setting are the first words of statements that write no rows at all.
var setting = []string{"set", "show", "reset", "lock", "listen", "unlisten", "notify", "discard", "deallocate", "pragma"}

// isWriting reports whether a word begins a part of a SELECT, WITH or EXPLAIN that writes.
func isWriting(text string, t, before token) bool {
	for _, w := range [...]string{"insert", "delete", "merge", "into"} {
		if is(text, t, w) {
			return true
		}
	}
	return is(text, t, "update") && !is(text, before, "for") && !is(text, before, "key")
}

// harmless reports whether a parenthesis after this token calls no function that can write.
func harmless(text string, before token) bool {
	switch before.kind {
	case word:
		w := text[before.start:before.end]
		for _, known := range harmlessWords {
			if strings.EqualFold(w, known) {
				return true
			}
		}
		return len(w) > 3 && strings.EqualFold(w[:3], "pg_") // advisory locks, sizes, sleeps
	case quoted, coded:
		return false
	case eof, semicolon, opening, closing, other:
	}
	return true
}

// harmlessWords may stand before a parenthesis in a statement that only reads: words of the grammar, and the functions that
// programs call most.
var harmlessWords = []string{
	"in", "and", "or", "not", "where", "on", "using", "exists", "any", "all", "some", "as", "from", "join", "select", "by", "values",
	"over", "filter", "having", "when", "then", "else", "limit", "offset", "union", "except", "intersect", "distinct", "materialized",
	"lateral", "between", "like", "ilike", "is", "case", "array", "row", "cast", "extract", "set", "update", "of", "numeric", "decimal",
	"varchar", "char", "timestamp", "timestamptz", "time", "interval", "bit", "grouping", "rollup", "cube", "sets", "group",
	"count", "sum", "min", "max", "avg", "bool_and", "bool_or", "every", "array_agg", "string_agg", "json_agg", "jsonb_agg",
	"json_build_object", "jsonb_build_object", "row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "ntile",
	"coalesce", "nullif", "greatest", "least", "abs", "ceil", "floor", "round", "trunc", "mod", "power", "sqrt", "random", "sign",
	"lower", "upper", "length", "char_length", "substring", "substr", "trim", "ltrim", "rtrim", "btrim", "replace", "concat", "concat_ws",
	"position", "strpos", "left", "right", "lpad", "rpad", "split_part", "md5", "format", "encode", "decode", "convert_from", "to_char",
	"to_date", "to_number", "to_timestamp", "now", "clock_timestamp", "statement_timestamp", "date_trunc", "date_part", "age",
	"make_interval", "generate_series", "unnest", "array_length", "cardinality", "array_position", "to_json", "to_jsonb",
	"jsonb_array_elements", "jsonb_extract_path", "set_config", "current_setting", "current_database", "current_schema", "version",
	"to_regclass", "has_column_privilege", "format_type", "quote_ident", "quote_literal", "gen_random_uuid",
}
