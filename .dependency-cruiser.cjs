// The import rules of the tree (docs/architecture.md). `npm run check` fails on any import that breaks one.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const rule = (name, from, to, comment) => ({ name, comment, severity: 'error', from, to });
const SRC = '^src/';
const PORT = '[/-]port\\.ts$';
/** Pure code of a domain. The generated types of the group `core` are no domain. */
const CORE = '^src/(?!api/generated/).*/core/';
const DOMAINS = 'store|gossip|pki|apiserver|controllers|scheduler|kubelet|runtime|network|openshift|rigs|metrics|kubectl|console|doctor|alerts|logging|support-bundle|status';
/** Kinds of a feature are in its folder and follow the rules of `api`. */
const KINDS = '^src/(?:openshift|rigs|network)/.*kinds/';
/** Pure parts that every controller may use. */
const FRAMEWORK_CORE = '^src/controllers/framework/core/';
/** Adapters that are not in a folder named `io`. */
const ADAPTERS =
  '^src/(runtime/(?:oci|images|cri|directory-removal)|gossip/(?:memberlist|agent)|store/(?:disk|client)|network/pods/cni|pki)/';
const CONTROLLER = '[/-]controller\\.ts$';
/** File outside of `controller.ts` that sends the requests of its controller. */
const CONTENT_SCAN = '^src/controllers/garbage-collection/namespace/content-scan\\.ts$';
const PLANS = '^src/controllers/(?:workloads|network|storage|nodes|identity|quota|garbage-collection)/';
const IO_MODULES = 'fs|fs/promises|net|child_process|https|http|http2|tls|dgram|dns|dns/promises|worker_threads';
/** Files of a domain that do I/O themselves. The list may only shrink: the check below fails for a file without I/O. */
const OWN_IO = ['durable-files', 'fallback', 'recover', 'restore', 'snapshots'].map(
  (name) => `src/store/administration/${name}.ts`,
);
for (const path of OWN_IO)
  if (!new RegExp(`from 'node:(?:${IO_MODULES})'`).test(readFileSync(join(__dirname, path), 'utf8')))
    throw new Error(`${path}: imports no I/O; remove it from OWN_IO`);
const IO = `^(?:node:)?(?:${IO_MODULES})$`;

/** Imports between domains that are allowed besides ports and kinds. The list may only shrink. */
const CROSSINGS = {
  // The console shows the fix of an alert, which is part of its rule.
  console: ['^src/alerts/core/rules\\.ts$'],
  apiserver: [
    // Admission and computed resources of a feature use its pure core.
    '^src/(?:openshift/(?:security-context-constraints|image-streams|templates)|network/router|rigs|metrics)/core/',
    // Evictions count ready pods as the disruption controller does.
    FRAMEWORK_CORE,
    // The namespace of the machine config daemon exists before its controller runs.
    '^src/openshift/machine-config/core/pools/daemon-set\\.ts$',
  ],
  // Static pods and mirror pods have owner references.
  kubelet: [FRAMEWORK_CORE],
  // Controllers of a feature use the framework of all controllers.
  network: ['^src/controllers/framework/'],
  rigs: ['^src/controllers/framework/'],
  // `patch --local` and kustomize apply the same patches as the server.
  kubectl: ['^src/apiserver/core/patch/index\\.ts$'],
  // The rights that an operator requires are compared with those it has.
  openshift: ['^src/controllers/framework/', '^src/apiserver/core/authorization/index\\.ts$'],
};

module.exports = {
  forbidden: [
    rule('no-cycles', {}, { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }, 'run-time import cycles'),
    rule('no-type-cycles', { path: ['^src/(?:base|wire|api|client|store|apiserver)/', '^src/gossip/(?:agent|memberlist)/', '^src/runtime/images/', '^src/network/pods/io/', '^src/kubelet/io/streaming/', CORE] }, { circular: true, viaOnly: { pathNot: '^src/api/generated/' } }, 'import cycles, those of types included'),

    // base ← wire ← api ← client ← domains ← host ← cli
    rule('base-imports-nothing', { path: '^src/base/' }, { pathNot: '^src/base/' }, 'base stands on nothing, not even node:*'),
    rule('wire-imports-base', { path: '^src/wire/' }, { path: SRC, pathNot: '^src/(?:base|wire)/' }, 'codecs and connections import base only'),
    rule('api-is-pure', { path: ['^src/api/', KINDS] }, { pathNot: ['^src/(?:base|wire/protobuf|api)/', KINDS] }, 'the type system and kinds import base, protobuf and each other'),
    rule('kinds-are-listed', { path: '^src/api/', pathNot: '^src/api/(?:registry/|resources\\.ts$)' }, { path: KINDS }, 'only the registry and the table of resources name the kinds of features'),
    rule('client-imports-api', { path: '^src/client/' }, { path: SRC, pathNot: ['^src/(?:base|wire|api|client)/', KINDS, PORT] }, 'the client imports base, wire, api and port types'),
    rule('host-is-outermost', { path: SRC, pathNot: ['^src/(?:host|cli)/', '^src/main\\.ts$'] }, { path: ['^src/(?:host|cli)/', '^src/main\\.ts$'] }, 'composition is outermost'),
    rule('host-not-cli', { path: '^src/host/' }, { path: '^src/cli/' }, 'the host does not know the command line'),
    rule('cli-calls-host', { path: '^src/cli/' }, { path: SRC, pathNot: ['^src/(?:base|host|cli)/', CORE, PORT, '/config/'] }, 'commands call the host, which composes the domains; they parse flags with the config folder of a component'),
    rule('cli-core-types-only', { path: '^src/cli/' }, { path: [CORE, PORT], dependencyTypesNot: ['type-only'] }, 'commands use types of a core or port only'),
    rule('src-never-test', { path: SRC }, { path: '^(?:test|build)/' }, 'src never imports test or build'),

    // The console runs in a browser
    rule('console-is-browser-code', { path: '^src/console/' }, { pathNot: ['^src/console/', '^src/(?:base|api)/', KINDS, '^src/client/(?:backoff|resource-path)\\.ts$', '^src/alerts/core/rules\\.ts$', '^node_modules/(?:preact|@preact|uplot|@xterm|@codemirror|@lezer|yaml|modern-tar|uqr)/'] }, 'the console imports pure code of base, api and client, kinds, and libraries for browsers'),
    rule('console-types-of-api', { path: '^src/console/' }, { path: ['^src/api/', KINDS], pathNot: '^src/api/(?:meta/(?:object|status)|printing/duration|kinds/nodes/nodes/host-report|releases/(?:announcement|manifest))\\.ts$', dependencyTypesNot: ['type-only'] }, 'the console uses types of the API and a few small functions; the code of kinds would be in every first load'),
    rule('console-alone', { path: SRC, pathNot: '^src/console/' }, { path: '^src/console/' }, 'only the build bundles the console'),

    // Domains
    ...DOMAINS.split('|').map((domain) =>
      rule(`${domain}-apart`, { path: `^src/${domain}/` }, { path: `^src/(?:${DOMAINS})/`, pathNot: [`^src/${domain}/`, PORT, KINDS, ...(CROSSINGS[domain] ?? [])] }, 'a domain uses the ports of another; exceptions are in CROSSINGS'),
    ),
    rule('store-port-only-apiserver', { path: `^src/(?:${DOMAINS})/`, pathNot: '^src/(?:apiserver|store)/' }, { path: '^src/store/port\\.ts$' }, 'only the API server uses the store'),

    // Inside a domain
    rule('core-is-pure', { path: CORE }, { pathNot: ['^src/(?:base|api|wire/protobuf)/', KINDS, PORT, CORE] }, 'no node:*, no npm packages and no outer folder in a core'),
    rule('core-own-only', { path: '^src/(.+?)/core/' }, { path: CORE, pathNot: ['^src/$1/core/', PORT, FRAMEWORK_CORE] }, 'a core imports no core of another feature'),
    rule('core-parts-apart', { path: '^src/(store|apiserver|kubelet)/core/([^/]+)/' }, { path: '^src/$1/core/', pathNot: ['^src/$1/core/$2/', '^src/store/core/messages/', PORT] }, 'the parts of these cores never import each other'),
    rule('plans-are-pure', { path: PLANS, pathNot: [CONTROLLER, PORT, CONTENT_SCAN] }, { pathNot: ['^src/(?:base|api)/', FRAMEWORK_CORE, PLANS, PORT] }, 'plans import base, api and the pure part of the framework'),
    rule('plans-not-controllers', { path: PLANS, pathNot: [CONTROLLER, PORT] }, { path: CONTROLLER }, 'a controller calls its plan'),
    rule('io-knows-ports-only', { path: '^src/(.+?)/io/' }, { path: SRC, pathNot: ['^src/(?:base|wire|api)/', KINDS, PORT, '^src/$1/(?:io|core)/'] }, 'adapters import base, wire, api, port types and the core of their feature'),
    rule('io-apart', { path: '^src/(.+?)/io/([^/]+)/', pathNot: '^src/network/pods/io/' }, { path: '^src/$1/io/', pathNot: ['^src/$1/io/$2/', PORT] }, 'an adapter never imports another adapter'),
    rule('adapters-know-ports-only', { path: ADAPTERS }, { path: SRC, pathNot: ['^src/(?:base|wire|api)/', KINDS, PORT, '^src/store/core/messages/', '^src/$1/'] }, 'adapters import base, wire, api and port types'),
    rule('domains-no-io', { path: `^src/(?:${DOMAINS})/`, pathNot: [PORT, ADAPTERS, '/(?:io|config)/', ...OWN_IO.map((path) => `^${path}$`)] }, { path: IO }, 'I/O is behind a port, implemented by an adapter'),
    rule('ports-no-io', { path: `^src/(?:${DOMAINS})/.*${PORT}` }, { path: IO, dependencyTypesNot: ['type-only'] }, 'a port names types of node:http at most'),

    // The API server
    rule('apiserver-storage-inward', { path: '^src/apiserver/(?:storage|watch-cache)/' }, { path: '^src/apiserver/(?:rest|admission|pipeline)/' }, 'storage and watch cache do not import the request handlers'),
    rule('apiserver-rest-not-admission', { path: '^src/apiserver/rest/' }, { path: '^src/apiserver/admission/' }, 'handlers use the admission port of pipeline/'),
    rule('apiserver-admission-not-rest', { path: '^src/apiserver/admission/' }, { path: '^src/apiserver/rest/' }, 'plug-ins use the contracts of pipeline/'),
    rule('apiserver-pipeline-inward', { path: '^src/apiserver/pipeline/' }, { path: '^src/apiserver/(?:rest|admission)/' }, 'contracts import neither handlers nor plug-ins'),
    rule('not-to-dev-dep', { path: SRC }, { dependencyTypes: ['npm-dev'], pathNot: ['^node_modules/@types/'] }, 'what ships must be a dependency'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.tsx', '.js', '.json'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
