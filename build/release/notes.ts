/** Release notes: the section of a version in CHANGELOG.md. */

/** Release notes of a version. Throws an Error that names the section if it is missing. */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^(?=## )/m);
  const section = sections.find((each) => each.startsWith(`## ${version}\n`) || each.startsWith(`## ${version} (`));
  if (section === undefined)
    throw new Error(`CHANGELOG.md: has no section "## ${version}"; add it, or correct the version of package.json`);
  const body = section.replace(/^## .*\n+/, '').trimEnd();
  if (body === '') throw new Error(`CHANGELOG.md: the section "## ${version}" is empty; add what users notice`);
  return `# hyperedge ${version}\n\n${body}\n`;
}
