PRAGMA application_id=0;
PRAGMA user_version=1;
PRAGMA page_size=4096;
PRAGMA auto_vacuum=0;
BEGIN TRANSACTION;
CREATE TABLE failures (
	job INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	error TEXT NOT NULL, 
	PRIMARY KEY (job, "key")
);
CREATE TABLE jobs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	queue VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	total INTEGER NOT NULL, 
	done INTEGER NOT NULL, 
	computed INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	label VARCHAR NOT NULL, 
	seconds_left FLOAT, 
	created FLOAT NOT NULL, 
	queued FLOAT NOT NULL, 
	started FLOAT, 
	finished FLOAT, 
	error TEXT NOT NULL, 
	note TEXT NOT NULL, 
	owner_host VARCHAR NOT NULL, 
	owner_pid INTEGER NOT NULL, 
	owner_started FLOAT NOT NULL, 
	heartbeat FLOAT NOT NULL, 
	cancel_requested BOOLEAN NOT NULL, 
	spec TEXT NOT NULL
);
INSERT INTO "jobs" VALUES(1,'evaluate','First','local','done',0,0,0,0,'',NULL,1.79590402407666325569e+09,1.79590402407666325569e+09,NULL,NULL,'','','vm',17904,1795904022.72,1.79590402407666325569e+09,0,'{"models": ["bert-reviews"]}');
INSERT INTO "jobs" VALUES(2,'evaluate','Second','local','cancelled',0,0,0,0,'',NULL,1.79590402408203864094e+09,1.79590402408203864094e+09,NULL,NULL,'','','vm',17904,1795904022.72,1.79590402408203864094e+09,0,'{"models": ["bert-reviews"]}');
CREATE INDEX ix_jobs_state ON jobs (state);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',2);
COMMIT;
PRAGMA journal_mode=WAL;
