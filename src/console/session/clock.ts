import { ServerClock } from '../data/server-clock.ts';

/** Clock of the API server. The login reads it first, so all views start with the right time. */
export const serverClock = new ServerClock(() => Date.now());
