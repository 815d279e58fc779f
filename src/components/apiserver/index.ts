/** The API server. `createApiServer(deps).start()`; what it serves is declared in `src/api/registry`. */
export type { ApiServerConfig } from './config.ts';
export type { ApiServer, ApiServerDeps } from './deps.ts';
export { createApiServer } from './server.ts';
