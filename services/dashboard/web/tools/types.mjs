/**
 * Writes src/api/schema.d.ts from the server's OpenAPI description.
 *
 * openapi-typescript needs TypeScript 5, so it lives in a folder of its own and is
 * installed when it is first used. With `--check` nothing is written: it fails if the
 * file is older than the description.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const tools = join(dirname(fileURLToPath(import.meta.url)), "openapi");
const web = dirname(dirname(tools));
const source = join(dirname(web), "openapi.json");
const target = join(web, "src", "api", "schema.d.ts");

if (!existsSync(join(tools, "node_modules"))) {
  execFileSync("npm", ["ci", "--silent"], { cwd: tools, stdio: "inherit" });
}
const program = join(tools, "node_modules", ".bin", "openapi-typescript");
const made = execFileSync(program, [source, "--root-types", "--root-types-no-schema-prefix"], {
  cwd: tools,
  encoding: "utf8",
  maxBuffer: 1 << 26,
});
if (process.argv.includes("--check")) {
  if (!existsSync(target) || readFileSync(target, "utf8") !== made) {
    process.stderr.write("src/api/schema.d.ts is not what openapi.json says; run npm run types\n");
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, made);
}
