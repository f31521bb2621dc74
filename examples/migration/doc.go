// Package migration proves what docs/migration.md says: Holdfast beside the locks it takes the
// place of, on the same keys of a real Redis. It is a module of its own, since those are
// dependencies that no user of Holdfast should inherit.
//
// [CertmagicStorage] is a recipe: copy the file.
package migration
