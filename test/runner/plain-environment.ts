/**
 * Loaded into each test file by `tap run`: removes tap's settings from the environment, so that the programs that the
 * file starts, such as the packaged executable, run without tap's module hooks.
 */
import processOnSpawn from 'process-on-spawn';

processOnSpawn.removeAllListeners();
for (const name of Object.keys(process.env))
  if (name === 'NODE_OPTIONS' || /^_?TAP/.test(name)) delete process.env[name];
