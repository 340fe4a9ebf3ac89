// Package tokens writes the table of fencing tokens: the numbers, their durability, and statements that issue one token, one for each row of a
// relation, or many at once. Package fence has the table itself, and says what a token is.
package tokens
