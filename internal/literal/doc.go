// Package literal writes the constants of a condition into its text, where the server can see them.
//
// A statement that is sent often is prepared. From its sixth run on, the server may plan it once for all values of its parameters. Such a plan
// cannot use a partial index: nothing shows that state = $1 means the index's condition, state = 'ready'. So arguments that are constants of a
// program are written into the text: strings, booleans and integers that have few values at their place. If an argument turns out to have many
// values, such as an id, it stays a parameter from then on. So a condition has few texts, and whatever prepares statements keeps few of them.
//
// A condition must mean the same with the constants and without. A string in quotes gets its type from its surroundings, as a parameter does. A
// number or a boolean in the text has its own type. So it is only written if it is compared with a column of that type and with nothing else: not
// with a JSON value, and not as an argument of a function.
package literal
