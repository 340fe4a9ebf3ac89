// Package jobmark is how package work marks the tables of its models, so that others find them without GORM: by a comment on
// the index of the jobs that are ready.
package jobmark

import "reflect"

// Prefix begins each comment.
const Prefix = "gormlock work: "

// Of is the comment for a model.
func Of(model reflect.Type) string { return Prefix + model.PkgPath() + "." + model.Name() }
