/**
 * Prints the path of a Chromium that starts headless, and nothing else.
 *
 * In this order: `WEIR_CHROMIUM`; `chromium` on PATH; the one that the npm package
 * `@sparticuz/chromium` carries, unpacked once below node_modules together with the
 * shared libraries and fonts that it needs, so that no system package is installed.
 * It never downloads anything.
 *
 * Flags that a caller must give to the unpacked one: `--no-sandbox` where the user is
 * root or user namespaces are off. It is a headless shell: no other mode exists.
 *
 * Use: `node e2e/chromium.mjs`, or from Python with Playwright 1.57:
 * `playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])`.
 */
import { spawn } from "node:child_process";
import { accessSync, constants, createReadStream, createWriteStream, existsSync } from "node:fs";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createBrotliDecompress } from "node:zlib";

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKAGE = join(WEB, "node_modules", "@sparticuz", "chromium");
// Goes up with what `writeStarter` writes, so that one unpacked before is not used again.
const STARTER = 2;
const NAMES = ["chromium", "chromium-browser", "chrome-headless-shell"];

/** Tells whether a file can be run. */
function runs(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the first Chromium on PATH, or undefined. */
function onPath() {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(runs);
}

/** Unpacks a brotli-compressed file. */
async function unpackFile(from, to) {
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
  await chmod(to, 0o755);
}

/**
 * Unpacks a brotli-compressed tar into a folder, by way of a file: a tar that reads from a
 * pipe may end before the last padding is written, and the writer would call that an error.
 */
async function unpackTar(from, folder) {
  const archive = join(folder, `${basename(from)}.tar`);
  await unpackFile(from, archive);
  const tar = spawn("tar", ["-x", "-f", archive, "-C", folder], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  await new Promise((resolve, reject) => {
    tar.on("error", reject);
    tar.on("exit", (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`could not unpack ${from}: tar ended with ${code}`)),
    );
  });
  await rm(archive);
}

/** Returns a rule that puts one font in front for a generic family. */
function alias(generic, font) {
  return `<match target="pattern"><test name="family"><string>${generic}</string></test>
<edit name="family" mode="prepend" binding="strong"><string>${font}</string></edit></match>`;
}

/** Writes the fonts' configuration and the script that starts the browser with both. */
async function writeStarter(folder, home) {
  // A system's own fonts are used where there are some; Open Sans comes with the package.
  const fonts = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
<dir>${home}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${home}/cache</cachedir>
${["system-ui", "sans-serif"].map((name) => alias(name, "Open Sans")).join("\n")}
${["ui-monospace", "monospace"].map((name) => alias(name, "DejaVu Sans Mono")).join("\n")}
</fontconfig>\n`;
  await writeFile(join(folder, "fonts.conf"), fonts);
  // Chromium sets these two itself once it has threads, and the second makes the table of the
  // environment move. A thread that reads it meanwhile dies of SIGSEGV, in any glibc before
  // 2.41. What is set already moves nothing.
  const script = `#!/bin/sh
export DBUS_SESSION_BUS_ADDRESS="\${DBUS_SESSION_BUS_ADDRESS:-disabled:}"
export FC_FONTATIONS=1
export LD_LIBRARY_PATH="${home}/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FONTCONFIG_FILE="${home}/fonts.conf"
exec "${home}/headless-shell" "$@"\n`;
  await writeFile(join(folder, "chromium"), script);
  await chmod(join(folder, "chromium"), 0o755);
}

/** Unpacks the packaged Chromium, unless that was done before, and returns its starter. */
async function unpacked() {
  const manifest = JSON.parse(await readFile(join(PACKAGE, "package.json"), "utf8"));
  const cache = join(WEB, "node_modules", ".cache");
  const home = join(cache, `chromium-${manifest.version}-${STARTER}`);
  if (existsSync(join(home, "chromium"))) return join(home, "chromium");
  // A folder of its own, renamed when complete: an interrupted run leaves no half browser.
  const folder = `${home}.${process.pid}`;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const bin = join(PACKAGE, "bin");
  await Promise.all([
    unpackFile(join(bin, "chromium.br"), join(folder, "headless-shell")),
    ...["al2023", "fonts", "swiftshader"].map((n) => unpackTar(join(bin, `${n}.tar.br`), folder)),
  ]);
  await writeStarter(folder, home);
  await rename(folder, home).catch((error) => {
    if (!existsSync(join(home, "chromium"))) throw error;
  });
  return join(home, "chromium");
}

/**
 * Returns the path of a usable Chromium.
 *
 * @throws {Error} If `WEIR_CHROMIUM` names no program, or the package is not installed.
 */
export async function chromium() {
  const chosen = process.env.WEIR_CHROMIUM;
  if (chosen) {
    if (runs(chosen)) return chosen;
    throw new Error(`WEIR_CHROMIUM must name a program, got "${chosen}"; unset it or correct it`);
  }
  const found = onPath();
  if (found) return found;
  if (existsSync(PACKAGE)) return unpacked();
  throw new Error(`no Chromium found; run "npm ci" in ${WEB}, or set WEIR_CHROMIUM`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.stdout.write(`${await chromium()}\n`);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
