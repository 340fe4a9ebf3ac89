package sqltext

import (
	"maps"
	"slices"
)

// JudgesRow reports whether the conditions of a query depend on nothing but the row that they judge. The text begins with FROM, which must have
// one table, and there must be no sub-query and no function that may read tables. If the text does not show that, it reports false. PostgreSQL
// lets a function stand after a table's name like a column (t.f), so only names that isColumn knows count as columns. Operators, casts, and
// functions with the name of one of PostgreSQL's own count as PostgreSQL's: see RowWords.
func JudgesRow(text string, isColumn func(name string) bool) bool {
	l := lexer{text: text}
	if !is(text, l.next(), "from") {
		return false
	}
	t, ok := behindName(&l)
	if !ok || t.kind != eof && !is(text, t, "where") && !is(text, t, "order") {
		return false
	}
	for before := (token{}); t.kind != eof; {
		next := l.next()
		switch {
		case !isNamed(t):
		case next.kind == opening && (t.kind != word || isDot(text, before) || !isRowWord(text[t.start:t.end])):
			return false
		case isDot(text, before) && !isDot(text, next) && !isColumn(name(text, t)):
			return false
		}
		switch {
		case next.kind == semicolon, is(text, next, "select"), is(text, next, "table"), is(text, next, "values"), is(text, next, "with"):
			return false
		}
		before, t = t, next
	}
	return !l.unterminated && !l.backslash
}

// behindName is the token after the name of a table.
func behindName(l *lexer) (t token, ok bool) {
	for {
		if !isNamed(l.next()) {
			return t, false
		}
		if t = l.next(); !isDot(l.text, t) {
			return t, true
		}
	}
}

func isNamed(t token) bool { return t.kind == word || t.kind == quoted || t.kind == coded }

func isDot(text string, t token) bool { return t.kind == other && text[t.start:t.end] == "." }

// isRowWord looks a word up in rowWords. It allocates nothing.
func isRowWord(word string) bool {
	var small [24]byte
	if len(word) > len(small) {
		return false
	}
	for i := range len(word) {
		small[i] = word[i]
		if c := word[i]; c >= 'A' && c <= 'Z' {
			small[i] |= 0x20
		}
	}
	return rowWords[string(small[:len(word)])]
}

// rowWords are words before a parenthesis that read no table: keywords, types, and functions of PostgreSQL.
var rowWords = setOf(
	"and", "or", "not", "in", "any", "some", "all", "where", "by", "when", "then", "else", "case", "is", "like", "ilike", "between", "row", "cast", "on",
	"coalesce", "nullif", "greatest", "least", "extract", "position", "substring", "trim", "overlay", "interval",
	"numeric", "decimal", "varchar", "char", "character", "varying", "bit", "time", "timestamp", "timestamptz", "float",
	"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "current_timestamp", "localtimestamp", "current_time", "localtime",
	"date_trunc", "date_part", "age", "make_interval", "make_date", "make_timestamp", "to_timestamp", "to_date", "to_char", "to_number", "isfinite",
	"lower", "upper", "length", "char_length", "octet_length", "btrim", "ltrim", "rtrim", "lpad", "rpad", "replace", "left", "right", "substr", "concat",
	"concat_ws", "md5", "starts_with", "strpos", "split_part", "format",
	"abs", "ceil", "ceiling", "floor", "round", "trunc", "mod", "power", "sqrt", "sign", "random", "hashtext", "hashtextextended",
	"array_length", "cardinality", "array_position", "jsonb_array_length", "jsonb_extract_path", "jsonb_typeof", "jsonb_exists", "to_jsonb",
)

// RowWords are the names of functions that JudgesRow takes for PostgreSQL's own.
func RowWords() []string { return slices.Sorted(maps.Keys(rowWords)) }

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}
