/**
 * Seconds that slow test files take on two cores. A run starts the slowest first, so that none of them is left alone at
 * the end. `dist/cache/test-seconds.json` of an earlier run has precedence.
 */
export const SLOW_FILES: Readonly<Record<string, number>> = {
  'test/e2e/renewal.test.ts': 173,
  'test/e2e/joining.test.ts': 156,
  'test/attack/attack.test.ts': 143,
  'test/e2e/kubectl.test.ts': 139,
  'test/apiserver/other-stores.test.ts': 123,
  'test/e2e/store-faults.test.ts': 105,
  'test/store/administration/recover.test.ts': 103,
  'test/e2e/pods.test.ts': 80,
  'test/e2e/faults.test.ts': 79,
  'test/e2e/lost-routes.test.ts': 78,
  'test/openshift/revisions/cluster.test.ts': 76,
  'test/e2e/openshift-scc.test.ts': 73,
};
