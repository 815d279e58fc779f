/**
 * Adds a kind to a copy of the type system as CONTRIBUTING.md describes it: one folder and an entry in the registry.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { generatedTypes } from '../../../src/api/schema/generated/types.ts';

type Registry = typeof import('../../../src/api/registry/index.ts');
type Discovery = typeof import('../../../src/api/discovery/index.ts');
type OpenApi = typeof import('../../../src/api/openapi/v2.ts');

const ROOT = join(import.meta.dirname, '../../..');
const scratch = mkdtempSync(join(tmpdir(), 'hyperedge-kind-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const GADGETS = `
import { ageColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';

export const gadgets: KindDefinition = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  singular: 'gadget',
  listKind: 'GadgetList',
  namespaced: true,
  shortNames: ['gd'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.coordination.v1.Gadget',
  skeleton: { spec: {} },
  returnsDeleted: true,
  storagePrefix: 'gadgets',
  strategy: {},
  columns: [nameColumn, ageColumn],
};
`;

const load = async <T>(file: string): Promise<T> => import(pathToFileURL(join(scratch, 'src/api', file)).href);

test('a new kind needs one folder and one registry entry', async () => {
  for (const room of ['api', 'base', 'network', 'openshift', 'rigs', 'wire'])
    cpSync(join(ROOT, 'src', room), join(scratch, 'src', room), { recursive: true });
  writeFileSync(join(scratch, 'package.json'), '{"type":"module"}');
  const folder = join(scratch, 'src/api/kinds/nodes/gadgets');
  mkdirSync(folder);
  writeFileSync(join(folder, 'index.ts'), GADGETS);
  const table = join(scratch, 'src/api/registry/index.ts');
  const before = readFileSync(table, 'utf8');
  const added = before
    .replace('import { ', "import { gadgets } from '../kinds/nodes/gadgets/index.ts';\nimport { ")
    .replace('  leases,\n', '  leases,\n  gadgets,\n');
  assert.equal(added.split('\n').length, before.split('\n').length + 2);
  writeFileSync(table, added);
  // The client has no class for this kind, so the test provides the schema.
  const prefix = 'io.k8s.api.coordination.v1';
  const types = JSON.stringify({
    ...generatedTypes,
    [`${prefix}.Gadget`]: generatedTypes[`${prefix}.Lease`],
    [`${prefix}.GadgetList`]: generatedTypes[`${prefix}.LeaseList`],
  });
  writeFileSync(join(scratch, 'src/api/schema/generated/types.ts'), `export const generatedTypes = ${types};\n`);

  const { builtinKinds, kindByGvk, kindByPath } = await load<Registry>('registry/index.ts');
  const { discoveryDocuments } = await load<Discovery>('discovery/index.ts');
  const { openapiV2 } = await load<OpenApi>('openapi/v2.ts');
  const found = kindByPath('coordination.k8s.io', 'v1', 'gadgets')?.kind;
  assert.equal(found?.kind, 'Gadget');
  assert.equal(kindByGvk({ group: 'coordination.k8s.io', version: 'v1', kind: 'Gadget' })?.kind, found);
  const listed = discoveryDocuments(builtinKinds).resources.get('coordination.k8s.io/v1')?.resources;
  assert.deepEqual(
    listed?.map(({ name, shortNames }) => [name, shortNames]),
    [
      ['gadgets', ['gd']],
      ['leases', undefined],
    ],
  );
  // The response to a delete is declared in the folder too.
  const { paths } = openapiV2(builtinKinds, {});
  const path = paths['/apis/coordination.k8s.io/v1/namespaces/{namespace}/gadgets/{name}'];
  assert.match(JSON.stringify(path?.delete?.responses), /Gadget/);
  assert.match(
    JSON.stringify(paths['/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}']?.delete?.responses),
    /Status/,
  );
});
