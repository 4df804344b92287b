package value

import "testing"

func TestLetters(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, upper, lower, capital, title string }{
		{"hello wORLD", "HELLO WORLD", "hello world", "Hello world", "Hello World"},
		{"straße", "STRASSE", "straße", "Straße", "Straße"},
		{"ßx", "SSX", "ßx", "Ssx", "Ssx"},
		{"ΑΣ", "ΑΣ", "ας", "Ας", "Ας"},
		{"it's 3d", "IT'S 3D", "it's 3d", "It's 3d", "It'S 3D"},
		{"", "", "", "", ""},
		{"ǆa", "ǄA", "ǆa", "ǅa", "ǅa"},
	}
	for _, c := range cases {
		for _, pair := range [][3]string{{"Upper", Upper(c.in), c.upper}, {"Lower", Lower(c.in), c.lower}, {"Capitalize", Capitalize(c.in), c.capital}, {"Title", Title(c.in), c.title}} {
			if pair[1] != pair[2] {
				t.Errorf("%s(%q) = %q, want %q", pair[0], c.in, pair[1], pair[2])
			}
		}
	}
}
