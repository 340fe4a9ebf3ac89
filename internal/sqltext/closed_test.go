package sqltext

import "testing"

func TestIsClosed(t *testing.T) {
	t.Parallel()
	for part, closed := range map[string]bool{
		"": true, "a = 1": true, "(a = 1)": true, "((a))": true, "(a": true, "a = ')'": true, "a = $$)$$": true, "a -- )\n": true, "a /* ) */": true,
		`")" = 1`: true, `a = 'x\'`: true, `a LIKE 'x' ESCAPE '\'`: true, `(a LIKE 'x' ESCAPE '\') AND (b = 'y')`: true, "f(a) = $1": true,
		")": false, "a) OR (b": false, "(a)) OR ((b)": false, "a = '(') OR (b": false, "a = 1) OR (1 = 1 /*(*/": false,
		`a = 'x\')'`: false, `a = '\') OR ('1' = '1'`: false, `a NOT LIKE 'b\_%' ESCAPE '\' AND b <> ':)'`: true,
	} {
		if IsClosed(part) != closed {
			t.Errorf("%s: %v", part, !closed)
		}
	}
}

func TestIsClosedOnMySQL(t *testing.T) {
	t.Parallel()
	for part, closed := range map[string]bool{
		"": true, "a = 1": true, "((a = 1) OR b)": true, "(a": true, "a = ')' AND `)` = \")\"": true, "a # )\n AND b": true, "a -- )\n": true, "a /* ) */": true,
		"a = 'it''s )'": true, "a /*+ hint */ = ?": true, "a = 1 --1": true, "a /* )": true, `a = 'don\'t :)'`: true, "a = 1 /*! AND b */": true,
		")": false, "a) OR (b": false, "1=1 # (\n) OR (1=1": false, "1=1 /* /* */ ) OR (1=1 /* */": false, "1=1 /*! ) OR (1=1 */": false, "1=1 /*M!100100 ( */ ) OR 1=1": false,
		`a = "\" ( " ) OR (1=1`: false, `a = '\' ( ' ) OR (1=1`: false, "1=1 --(\n) OR (1=1": true, "1=1 -- (\n) OR (1=1": false, "a = `\\` ) OR (b": false,
	} {
		if IsClosedOnMySQL(part) != closed {
			t.Errorf("%s: %v", part, !closed)
		}
	}
}
