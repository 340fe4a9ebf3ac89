// Package literal writes the constants of a condition into its text, where the server can see them.
//
// A statement that is sent often is prepared, and from its sixth run on the server may plan it once for all values of its
// parameters. Such a plan cannot use a partial index: nothing shows that state = $1 is what the index says, state =
// 'ready'. So arguments that are constants of a program stand in the text: strings, booleans and integers that have few
// values at their place. An argument that turns out to have many values, as an id has, stays a parameter from then on, so
// a condition has few texts, and whatever prepares statements keeps few of them.
//
// A condition must mean the same with the constants and without. A string in quotes gets its type from what stands beside it, as a
// parameter does. A number or a truth value in the text has a type of its own, so it stands there only where it is compared with a column
// of that type, and with nothing else: not with a JSON value, and not as an argument of a function.
package literal
