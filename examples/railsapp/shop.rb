# frozen_string_literal: true

# The Rails program: a shop on ActiveRecord. It is given its database as JSON in the first line of standard input, makes
# its tables as migrations make them, and says so. Then each line names a task, which it answers with a line of JSON.

require "json"
require "zlib"
require "active_record"

$stdout.sync = true
config = JSON.parse($stdin.gets)
THREADS, EACH = config.values_at("workers", "each")
ActiveRecord::Base.establish_connection(config["database"].merge("adapter" => "postgresql", "pool" => THREADS + 1))
ActiveRecord::Migration.verbose = false

# What it sends to the server, each text once.
SENT = Set.new
ActiveSupport::Notifications.subscribe("sql.active_record") do |*, event|
  SENT << event[:sql] unless event[:name] == "SCHEMA"
end

class CreateShop < ActiveRecord::Migration["#{ActiveRecord::VERSION::MAJOR}.#{ActiveRecord::VERSION::MINOR}"]
  def change
    create_table :accounts do |t|
      t.integer :balance, null: false, default: 0
      t.integer :lock_version, null: false, default: 0
      t.timestamps
    end
    create_table :invoices do |t|
      t.integer :number, null: false
      t.string :issued_by
    end
  end
end

class Account < ActiveRecord::Base
end

class Invoice < ActiveRecord::Base
end

# The gem with_advisory_lock, as far as PostgreSQL sees it: a lock of the session in the space of two int4, tried until
# it is there.
module AdvisoryLock
  def self.with(name)
    keys = [Zlib.crc32(name), ENV["WITH_ADVISORY_LOCK_PREFIX"].to_i].map { |part| part & 0x7fffffff }.join(",")
    connection = ActiveRecord::Base.connection
    sleep 0.005 until connection.uncached { connection.select_value("SELECT pg_try_advisory_lock(#{keys})") }
    begin
      yield
    ensure
      connection.select_value("SELECT pg_advisory_unlock(#{keys})")
    end
  end
end

# What one task comes to.
Report = Struct.new(:done, :amount, :again) do
  def +(other)
    Report.new(done + other.done, amount + other.amount, again + other.again)
  end
end

# deposit reads, adds and saves: lock_version tells it when somebody else was faster.
def deposit(id, amount)
  again = 0
  begin
    account = Account.find(id)
    account.update!(balance: account.balance + amount)
  rescue ActiveRecord::StaleObjectError
    again += 1
    retry
  end
  Report.new(1, amount, again)
end

# withdraw holds the row, so that nobody is faster.
def withdraw(id, amount)
  account = Account.find(id)
  account.with_lock do
    next Report.new(0, 0, 0) if account.balance < amount

    account.update!(balance: account.balance - amount)
    Report.new(1, amount, 0)
  end
end

# invoice takes the next number. Nothing but the lock keeps two from taking the same.
def invoice
  AdvisoryLock.with("invoices") do
    Invoice.create!(number: (Invoice.maximum(:number) || 0) + 1, issued_by: "Rails")
  end
  Report.new(1, 0, 0)
end

TASKS = {
  "deposits" => ->(n, accounts) { deposit(accounts[n % accounts.size], 1 + n % 7) },
  "withdrawals" => ->(n, accounts) { withdraw(accounts[n % accounts.size], 1 + n % 5) },
  "invoices" => ->(_, _) { invoice }
}.freeze

def perform(task, accounts)
  threads = Array.new(THREADS) do |i|
    Thread.new do
      ActiveRecord::Base.connection_pool.with_connection do
        Array.new(EACH) { |n| TASKS.fetch(task).call(i + n, accounts) }.sum(Report.new(0, 0, 0))
      end
    end
  end
  threads.map(&:value).sum(Report.new(0, 0, 0))
end

CreateShop.new.change
puts({ version: ActiveRecord.version.to_s }.to_json)
while (line = $stdin.gets)
  request = JSON.parse(line)
  puts perform(request["task"], request["accounts"]).to_h.merge(sent: SENT.to_a).to_json
end
