/** Messages that no kubectl carries, in the form of the generated table but for references, which are by name. Source: k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/generated.proto. */
const PACKAGE = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1';
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const API_SERVICE = `1 metadata m{${META}.ObjectMeta};2 spec m{${PACKAGE}.APIServiceSpec};3 status m{${PACKAGE}.APIServiceStatus}`;

const NAMED: Readonly<Record<string, string>> = {
  [`${PACKAGE}.APIService`]: API_SERVICE,
  // The older version looks the same.
  [`${PACKAGE}beta1.APIService`]: API_SERVICE,
  [`${PACKAGE}.APIServiceSpec`]: `1 service m{${PACKAGE}.ServiceReference};2 group s!;3 version s!;4 insecureSkipTLSVerify b!;5 caBundle y;7 groupPriorityMinimum i;8 versionPriority i`,
  [`${PACKAGE}.ServiceReference`]: '1 namespace s!;2 name s!;3 port i',
  [`${PACKAGE}.APIServiceStatus`]: `1 conditions *m{${PACKAGE}.APIServiceCondition}`,
  [`${PACKAGE}.APIServiceCondition`]: `1 type s;2 status s;3 lastTransitionTime m{${META}.Time};4 reason s!;5 message s!`,
};

/** Those, behind the ones of `table`. */
export function withRegistration(table: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = [...Object.keys(table), ...Object.keys(NAMED)];
  const rows = Object.entries(NAMED).map(([name, row]) => [
    name,
    row.replaceAll(/m\{([^}]+)\}/g, (_, referred: string) => `m${names.indexOf(referred)}`),
  ]);
  return { ...table, ...Object.fromEntries(rows) };
}
