// Package literal writes the constants of a condition into its text, where the server can see them.
//
// A statement that is sent often is prepared, and from its sixth run on the server may plan it once for all values of its
// parameters. Such a plan cannot use a partial index: nothing shows that state = $1 is what the index says, state =
// 'ready'. So arguments that are constants of a program stand in the text: strings, booleans and integers that have few
// values at their place. An argument that turns out to have many values, as an id has, stays a parameter from then on, so
// a condition has few texts, and whatever prepares statements keeps few of them.
package literal
