# frozen_string_literal: true

# A Rails program on the tables that the tests share with it. It is given its database as JSON in the first line of
# standard input, and then requests, one in a line:
#
#   {"id": 7, "session": "s1", "schema": "test_abc", "code": "@a = Account.find(1)"}
#
# A session is a thread with a connection of its own. Its code is Ruby, instance variables live as long as the session
# does, and a request without code ends it. The answer has the request's id and either the code's value or its error.

require "json"
require "zlib"
require "active_record"

ActiveRecord::Base.default_timezone = :utc if ActiveRecord.version < Gem::Version.new("7")
ActiveSupport::JSON::Encoding.time_precision = 6

class Account < ActiveRecord::Base
  has_many :entries
end

# Entry moves its account's version when it comes, goes or changes.
class Entry < ActiveRecord::Base
  belongs_to :account, touch: true, counter_cache: true
end

# Counter has no timestamps.
class Counter < ActiveRecord::Base
end

# Document calls its lock column by another name.
class Document < ActiveRecord::Base
  self.locking_column = :revision
end

TABLES = lambda do |c|
  c.create_table(:accounts) do |t|
    t.text :name
    t.integer :balance, default: 0
    t.integer :entries_count, default: 0
    t.integer :lock_version # as Rails' guide has it: NULL where nobody writes it
    t.datetime :deleted_at, precision: 6
    t.timestamps precision: 6, null: true
  end
  c.create_table(:entries) do |t|
    t.bigint :account_id
    t.text :text
  end
  c.create_table(:counters) do |t|
    t.text :name
    t.integer :lock_version, default: 0, null: false
  end
  c.create_table(:documents) do |t|
    t.text :title
    t.bigint :revision, default: 0, null: false
  end
end

# Session runs the code of one session, one request after the other.
class Session
  def initialize(schema, answer)
    @schema = schema
    @requests = Queue.new
    @thread = Thread.new do
      connection = ActiveRecord::Base.connection
      connection.schema_search_path = @schema
      while (request = @requests.pop)
        answer.call(request["id"], perform(request["code"]))
      end
      ActiveRecord::Base.connection_pool.remove(connection)
      connection.disconnect! # nobody inherits its locks or an open transaction
    end
  end

  def <<(request)
    @requests << request
  end

  def finish
    @requests << nil
    @thread.join
  end

  def tables
    TABLES.call(ActiveRecord::Base.connection)
  end

  # What Ruby's String is to pg_locks in the gem with_advisory_lock 4 and 5: PostgreSQLAdvisoryLock#lock_keys.
  def with_advisory_lock_keys(name, prefix)
    [Zlib.crc32(name.to_s, 0), prefix].map { |part| part.to_i & 0x7fffffff }
  end

  def sql(text)
    ActiveRecord::Base.connection.select_value(text)
  end

  private

  def perform(code)
    { value: instance_eval(code, "request") }
  rescue StandardError => e
    { error: { class: e.class.name, message: e.message,
               action: e.respond_to?(:attempted_action) ? e.attempted_action : nil } }
  end
end

database = JSON.parse($stdin.gets)
ActiveRecord::Base.establish_connection(database.merge("adapter" => "postgresql", "pool" => 100))

writing = Mutex.new
answer = lambda do |id, result|
  line = ActiveSupport::JSON.encode({ id: id }.merge(result))
  writing.synchronize do
    $stdout.puts(line)
    $stdout.flush
  end
end

sessions = {}
while (line = $stdin.gets)
  request = JSON.parse(line)
  name = request["session"]
  if request["code"]
    (sessions[name] ||= Session.new(request["schema"], answer)) << request
  else
    sessions.delete(name)&.finish
    answer.call(request["id"], { value: nil })
  end
end
