package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// The environment of a test program says which mutant is on, and of which it tells what tests reach them.
const (
	switchName = "GORMLOCK_MUTANT"
	askedName  = "GORMLOCK_MUTANTS_ASKED"
)

// switches is what a package needs for its mutants.
//
//go:embed switches.txt
var switches string

// overlayOf writes the files with their mutants to a folder, and the file that names them to the compiler. It returns the path of that.
func overlayOf(all []*source, dir string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	write := func(name string, text []byte) error {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root, filepath.FromSlash(name))] = file
		return os.WriteFile(file, text, 0o600)
	}
	for _, s := range all {
		if err := write(s.name, s.mutated()); err != nil {
			return "", err
		}
	}
	for _, folder := range packages {
		text := strings.Replace(switches, "PACKAGE", filepath.Base(folder), 1)
		if err := write(folder+"/mutant_switch.go", []byte(text)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
