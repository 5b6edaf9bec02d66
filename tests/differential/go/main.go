// SPDX-License-Identifier: GPL-3.0-or-later

// Reads manifests as kubectl does, with the libraries of kubectl itself, and tells what it found.
//
// In: a JSON list of texts. Out: a JSON list with the values of a text's documents each, or null where kubectl refuses the text.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The steps of cli-runtime's FileVisitor (which takes away the byte order mark) and StreamVisitor, then those of the decoder of unstructured objects.
func documents(text string) ([]json.RawMessage, error) {
	found := []json.RawMessage{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")), 4096)
	for {
		raw := runtime.RawExtension{}
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if len(raw.Raw) == 0 {
			continue
		}
		var value any
		if err := kjson.Unmarshal(raw.Raw, &value); err != nil {
			return nil, err
		}
		written, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		found = append(found, written)
	}
}

func main() {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		log.Fatal(err)
	}
	answers := make([][]json.RawMessage, len(texts))
	for index, text := range texts {
		if found, err := documents(text); err == nil {
			answers[index] = found
		} else if len(os.Args) > 1 {
			log.Printf("%d: %v", index, err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}
