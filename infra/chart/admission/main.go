// Command admission holds pods against the Pod Security Standard "restricted", with the
// evaluator that the Kubernetes API server itself uses.
//
// It reads a stream of JSON objects from standard input, {"name", "metadata", "spec"}, and
// writes one line for each rule that a pod breaks: name, rule, details. It ends with 0 if
// every pod keeps every rule, 1 if one does not, 2 if the input cannot be read.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const (
	exitBroken     = 1
	exitUnreadable = 2
)

type pod struct {
	Name     string            `json:"name"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

func main() {
	broken, err := check(os.Stdin, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "admission: %v\n", err)
		os.Exit(exitUnreadable)
	case broken > 0:
		os.Exit(exitBroken)
	}
}

// check reads pods to the end of the input and returns how many rules were broken.
func check(input io.Reader, output io.Writer) (int, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return 0, fmt.Errorf("rules could not be loaded: %w", err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	decoder := json.NewDecoder(input)
	// A member that the API does not know would be dropped silently, and with it a restriction.
	decoder.DisallowUnknownFields()
	broken := 0
	for {
		var one pod
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return broken, nil
		} else if err != nil {
			return broken, fmt.Errorf("a pod must be JSON as the API takes it: %w", err)
		}
		for _, result := range evaluator.EvaluatePod(restricted, &one.Metadata, &one.Spec) {
			if !result.Allowed {
				broken++
				fmt.Fprintf(output, "%s: %s: %s\n", one.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}
