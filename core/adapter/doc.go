// Package adapter is what Holdfast's middleware is made of. With it you write middleware for a framework
// that has none yet: it says where the values of a key come from, and what the outcomes mean to the framework.
//
// A [Key] is compiled from a template with the framework's [Sources], a [Rule] adds the options, and its Run gives
// the [Outcome] of each request. The example of the package is a whole middleware. Where work has a name, such as a kind of
// job, [Rules] are by that name; where it comes as JSON, [Document] has its sources.
//
// The rules of all of them:
//
//   - A lock is made of what the handler gets. If the framework decodes a request, take the values from what
//     it has decoded, as [Fields] does.
//   - A value has one spelling. Text needs a form, see [Text].
//   - What an adapter cannot know, it refuses: at the start if it can.
//   - Clients get no error text of core. It has the names of locks and their holders.
//
// The package may still change until more adapters stand on it.
package adapter
