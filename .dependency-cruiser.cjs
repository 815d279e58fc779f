// The arrows of the house (docs/architecture.md). `npm run check` fails on any import that goes against them.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const between = (name, from, to, comment) => ({ name, comment, severity: 'error', from, to });
const SRC = '^src/';
const PORT = '[/-]port\\.ts$';
const IO_MODULES = 'fs|fs/promises|net|child_process|https|http|http2|tls|dgram|dns|dns/promises|worker_threads';
/** Components with I/O of their own. May only shrink: a file that is listed without need fails the check. */
const OWN_IO = ['durable-files', 'fallback', 'recover', 'restore', 'snapshots'].map(
  (name) => `src/components/etcd/administration/${name}.ts`,
);
for (const path of OWN_IO)
  if (!new RegExp(`from 'node:(?:${IO_MODULES})'`).test(readFileSync(join(__dirname, path), 'utf8')))
    throw new Error(`${path}: imports no I/O; remove it from OWN_IO`);
const IO = `^(?:node:)?(?:${IO_MODULES})$`;
module.exports = {
  forbidden: [
    between('no-cycles', {}, { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }, 'run-time import cycles'),
    between('no-type-cycles', { path: '^src/(api|base|core|client|io/(agent|transport|images|links|streaming))/' }, { circular: true }, 'import cycles, those of types included'),
    between('store-no-type-cycles', { path: '^src/(components/etcd|io/(sqlite|grpc)|core/mvcc)/' }, { circular: true }, 'the store has no import cycles, type-only imports included'),
    between('base-imports-nothing', { path: '^src/base/' }, { pathNot: '^src/base/' }, 'base stands on nothing, not even node:*'),
    between('api-imports-base', { path: '^src/api/' }, { pathNot: ['^src/(base|api)/', 'kubernetes-types/'] }, 'api imports base only'),
    between('core-is-pure', { path: '^src/core/' }, { pathNot: ['^src/(base|api|core)/', 'kubernetes-types/'] }, 'no node:*, no npm, no outer room in core'),
    between('core-rooms-apart', { path: '^src/core/([^/]+)/' }, { path: '^src/core/', pathNot: '^src/core/$1/' }, 'core rooms never import each other'),
    between('io-knows-ports-only', { path: '^src/io/' }, { path: SRC, pathNot: ['^src/(base|api|io)/', PORT] }, 'io imports base, api and port types'),
    between('io-rooms-apart', { path: '^src/io/([^/]+)/' }, { path: '^src/io/', pathNot: ['^src/io/$1/', PORT] }, 'an adapter never imports another adapter'),
    between('client-arrows', { path: '^src/client/' }, { path: SRC, pathNot: ['^src/(base|api|client)/', PORT] }, 'client imports base, api and port types'),
    between('components-arrows', { path: '^src/components/' }, { path: SRC, pathNot: ['^src/(base|api|core|client|components)/', PORT] }, 'components import core, client and port types; io is handed to them'),
    between('components-no-io', { path: '^src/components/', pathNot: [PORT, ...OWN_IO.map((path) => `^${path}$`)] }, { path: IO }, 'I/O is behind a port beside the component, implemented in src/io'),
    between('ports-no-io', { path: `^src/components/.*${PORT}` }, { path: IO, dependencyTypesNot: ['type-only'] }, 'a port names types of node:http at most'),
    between('components-apart', { path: '^src/components/([^/]+)/' }, { path: '^src/components/', pathNot: ['^src/components/$1/', PORT] }, 'components meet through client/ only'),
    between('store-port-only-apiserver', { path: '^src/components/', pathNot: '^src/components/(apiserver|etcd)/' }, { path: '^src/core/mvcc/' }, 'only the API server sees the store port'),
    between('nothing-imports-roles-or-cli', { path: SRC, pathNot: ['^src/(roles|cli)/', '^src/main\\.ts$'] }, { path: ['^src/(roles|cli)/', '^src/main\\.ts$'] }, 'composition is the outermost room'),
    between('roles-not-cli', { path: '^src/roles/' }, { path: '^src/cli/' }, 'roles do not know the command line'),
    between('cli-calls-roles', { path: '^src/cli/' }, { path: '^src/(io|components|client|api)/' }, 'commands call roles; roles compose io and components'),
    between('cli-core-types-only', { path: '^src/cli/' }, { path: '^src/core/', dependencyTypesNot: ['type-only'] }, 'commands use core types only'),
    between('src-never-test', { path: SRC }, { path: '^(test|build)/' }, 'src never imports test or build'),
    between('apiserver-storage-inward', { path: '^src/components/apiserver/(storage|watchcache)/' }, { path: '^src/components/apiserver/(rest|admission|pipeline)/' }, 'storage and watch cache do not import the request handlers'),
    between('apiserver-rest-not-admission', { path: '^src/components/apiserver/rest/' }, { path: '^src/components/apiserver/admission/' }, 'handlers use the admission port of pipeline/'),
    between('apiserver-admission-not-rest', { path: '^src/components/apiserver/admission/' }, { path: '^src/components/apiserver/rest/' }, 'plug-ins use the contracts of pipeline/'),
    between('apiserver-pipeline-inward', { path: '^src/components/apiserver/pipeline/' }, { path: '^src/components/apiserver/(rest|admission)/' }, 'contracts import neither handlers nor plug-ins'),
    between('apiserver-no-type-cycles', { path: '^src/components/apiserver/' }, { circular: true }, 'import cycles, type-only ones included'),
    between('not-to-dev-dep', { path: SRC }, { dependencyTypes: ['npm-dev'], pathNot: ['^node_modules/(kubernetes-types|@types)/'] }, 'what ships must be a dependency'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.json'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
