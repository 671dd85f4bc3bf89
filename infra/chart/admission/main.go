// Command admission says what a cluster would say against objects.
//
// It reads a stream of JSON objects from standard input. A pod, {"name", "metadata", "spec"},
// is held against the Pod Security Standard "restricted", with the evaluator that the
// Kubernetes API server itself uses. A custom resource, {"name", "custom"}, is read into the
// type of its own project, which has no room for a member that is not known or of another type.
//
// One line is written for each fault: name, rule, details. It ends with 0 if there is none, 1
// if there is one, 2 if the input cannot be read.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	sigsjson "sigs.k8s.io/json"
)

const (
	exitBroken     = 1
	exitUnreadable = 2
)

type item struct {
	Name     string            `json:"name"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
	Custom   json.RawMessage   `json:"custom"`
}

// custom makes an empty object of each kind that is not Kubernetes' own.
var custom = map[string]func() any{
	"HTTPRoute":      func() any { return &gatewayv1.HTTPRoute{} },
	"PrometheusRule": func() any { return &monitoringv1.PrometheusRule{} },
	"ServiceMonitor": func() any { return &monitoringv1.ServiceMonitor{} },
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

// check reads objects to the end of the input and returns how many faults there are.
func check(input io.Reader, output io.Writer) (int, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return 0, fmt.Errorf("rules could not be loaded: %w", err)
	}
	decoder := json.NewDecoder(input)
	// A member that the API does not know would be dropped silently, and with it a restriction.
	decoder.DisallowUnknownFields()
	broken := 0
	for {
		var one item
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return broken, nil
		} else if err != nil {
			return broken, fmt.Errorf("an object must be JSON as the API takes it: %w", err)
		}
		faults := podFaults(evaluator, &one)
		if one.Custom != nil {
			faults = customFaults(one.Custom)
		}
		for _, fault := range faults {
			fmt.Fprintf(output, "%s: %s\n", one.Name, fault)
		}
		broken += len(faults)
	}
}

// podFaults returns the rules of "restricted" that a pod breaks.
func podFaults(evaluator policy.Evaluator, one *item) []string {
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var faults []string
	for _, result := range evaluator.EvaluatePod(restricted, &one.Metadata, &one.Spec) {
		if !result.Allowed {
			faults = append(faults, result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return faults
}

// customFaults returns what in a custom resource has no place in the type of its kind.
func customFaults(text []byte) []string {
	var told metav1.TypeMeta
	if err := json.Unmarshal(text, &told); err != nil {
		return []string{err.Error()}
	}
	empty, known := custom[told.Kind]
	if !known {
		return []string{fmt.Sprintf("kind must be one that is known here, got %q", told.Kind)}
	}
	strict, err := sigsjson.UnmarshalStrict(text, empty())
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, one := range strict {
		faults = append(faults, one.Error())
	}
	return faults
}
