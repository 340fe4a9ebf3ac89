package sqltext

import "strings"

// isWellKnown reports whether a parenthesis after this token calls no function, or one of PostgreSQL's own. The code of another one is not in the
// text: it may set the search_path, or make tables. Operators, casts and defaults may call functions too; they are not looked at.
func isWellKnown(text string, before token) bool {
	switch {
	case before.kind != word:
		return before.kind != quoted && before.kind != coded
	case harmless(text, before):
		return true
	}
	return isRowWord(text[before.start:before.end]) || wellKnown[lower(text[before.start:before.end])]
}

// wellKnown are functions of PostgreSQL and of extensions that ship with it, beside those that harmless and JudgesRow know.
var wellKnown = setOf(strings.Fields(`
	insert into update delete merge table view index returning conflict only
	nextval setval currval lastval txid_current txid_status xmin
	hashtext hashtextextended hash_record md5 sha224 sha256 sha384 sha512 digest hmac crypt gen_salt gen_random_bytes
	uuid_generate_v1 uuid_generate_v4 uuidv4 uuidv7 setseed cbrt exp ln log log10 pi degrees radians sin cos tan asin acos atan atan2 div gcd lcm
	factorial width_bucket trim_scale scale min_scale
	ascii chr initcap repeat reverse translate bit_length octet_length overlay quote_nullable string_to_array string_to_table array_to_string to_hex
	regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_count regexp_instr regexp_like regexp_substr
	unistr normalize parse_ident similarity word_similarity unaccent levenshtein soundex metaphone
	get_bit get_byte set_bit set_byte bit_count convert convert_to
	justify_days justify_hours justify_interval date_bin date_add date_subtract make_time make_timestamptz timeofday timezone isfinite overlaps
	array_append array_cat array_dims array_fill array_lower array_ndims array_positions array_prepend array_remove array_replace array_shuffle
	array_sample array_upper array_sort generate_subscripts
	bit_and bit_or bit_xor json_object_agg jsonb_object_agg range_agg range_intersect_agg xmlagg any_value
	corr covar_pop covar_samp regr_slope stddev stddev_pop stddev_samp variance var_pop var_samp mode percentile_cont percentile_disc
	percent_rank cume_dist nth_value within
	row_to_json json_build_array jsonb_build_array json_object jsonb_object json_array_elements json_array_elements_text jsonb_array_elements_text
	json_array_length json_each json_each_text jsonb_each jsonb_each_text json_extract_path json_extract_path_text jsonb_extract_path_text
	json_object_keys jsonb_object_keys json_populate_record jsonb_populate_record json_populate_recordset jsonb_populate_recordset json_to_record
	jsonb_to_record json_to_recordset jsonb_to_recordset json_strip_nulls jsonb_strip_nulls jsonb_set jsonb_set_lax jsonb_insert jsonb_pretty
	json_typeof jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_concat jsonb_delete
	json_exists json_query json_value json_table json_scalar json_serialize json_array json_arrayagg json_objectagg
	isempty lower_inc lower_inf upper_inc upper_inf range_merge multirange int4range int8range numrange tsrange tstzrange daterange
	to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline setweight strip numnode querytree
	abbrev broadcast host hostmask masklen netmask network set_masklen inet_same_family inet_merge text
	inet_client_addr inet_client_port inet_server_addr inet_server_port current_schemas current_user session_user current_role
	current_query has_table_privilege has_any_column_privilege has_schema_privilege has_function_privilege
	has_sequence_privilege has_database_privilege row_security_active col_description obj_description shobj_description
	to_regtype to_regproc to_regprocedure to_regnamespace to_regrole to_regoper to_regcollation regclass regtype oid
	num_nulls num_nonnulls box circle point polygon path line lseg area center distance length
	bigint int integer int4 int8 int2 smallint boolean bool real double precision date character varying bpchar uuid json jsonb bytea xid8
	database user last_insert_id connection_id get_lock release_lock sleep benchmark sqlite_version
	tablesample system bernoulli nulls within partition order exclude window recursive cycle search
`)...)
